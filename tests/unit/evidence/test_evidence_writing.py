"""A seal or a bundle is written whole or not at all, and what cannot be read is one line."""

import argparse
import errno

import pytest

from kerneltrial.commands import seal
from kerneltrial.evidence import sealed, tarball
from kerneltrial.evidence.problem import EvidenceProblem
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.store.signed import Signed


@pytest.fixture
def trial(tmp_path, monkeypatch):
    """A trial that could be sealed; `asked` counts verifications."""
    results = tmp_path / "results/t"
    results.mkdir(parents=True)
    asked = []
    monkeypatch.setattr(seal, "read_config", lambda given, root: (argparse.Namespace(trial="t"), root))
    monkeypatch.setattr(seal, "alone", lambda root, trial: results)
    monkeypatch.setattr(seal, "_of_run", lambda config, root: config)
    monkeypatch.setattr(seal, "_refuse_broken", lambda config, root: asked.append(root))
    monkeypatch.setattr(seal, "_sealed", lambda config, root, results: {"salt": "revealed"})
    monkeypatch.setattr(seal, "_sums", lambda config, root, written: b"sums")
    return argparse.Namespace(root=tmp_path, signed=Signed(results), asked=asked)


def test_before_the_trial_has_run_that_is_what_is_said(tmp_path, monkeypatch):
    (tmp_path / "results/t").mkdir(parents=True)
    monkeypatch.setattr(seal, "read_config", lambda given, root: (argparse.Namespace(trial="t"), root))
    with pytest.raises(InputProblem, match="the trial has not run"):
        seal.run(argparse.Namespace(sign=""), tmp_path)
    assert not Signed(tmp_path / "results/t").folder.exists()


@pytest.mark.parametrize("key", ["typo", "."])
def test_a_key_that_does_not_sign_seals_nothing(trial, key):
    with pytest.raises(EvidenceProblem):
        seal.run(argparse.Namespace(sign=key), trial.root)
    assert not trial.signed.folder.exists()
    (trial.root / "no_key").write_text("no key")
    with pytest.raises(EvidenceProblem, match="no_key: is no SSH key"):
        seal.run(argparse.Namespace(sign="no_key"), trial.root)
    assert not trial.signed.folder.exists()


def test_a_trial_that_was_sealed_before_is_verified_before_it_is_signed(trial, people, monkeypatch):
    assert seal.run(argparse.Namespace(sign=""), trial.root) == 0
    assert not trial.signed.sums_signature.exists()

    def broken(config, root):
        raise InputProblem("results/t: cannot be sealed: a byte was changed")

    with monkeypatch.context() as changed:
        changed.setattr(seal, "_refuse_broken", broken)
        with pytest.raises(InputProblem):
            seal.run(argparse.Namespace(sign=str(people.team)), trial.root)
    assert not trial.signed.sums_signature.exists()
    assert seal.run(argparse.Namespace(sign=str(people.team)), trial.root) == 0
    assert trial.signed.sums_signature.is_file()
    assert len(trial.asked) == 2


@pytest.mark.parametrize("where", ["no/such/folder/b.tar", "."])
def test_a_bundle_that_cannot_be_written_is_one_line_and_leaves_nothing(tmp_path, where):
    member = tmp_path / "m"
    member.write_text("m")
    target = (tmp_path / where).resolve()
    with pytest.raises(EvidenceProblem, match="name another file with --out"):
        tarball.pack({"m": member}, "t", target)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert not list(tmp_path.parent.glob(f".{tmp_path.name}.tmp"))


def test_a_full_disk_leaves_no_half_of_a_bundle(tmp_path, monkeypatch):
    member = tmp_path / "m"
    member.write_text("m")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tarball.tarfile.TarFile, "addfile", full)
    with pytest.raises(EvidenceProblem, match="No space left on device"):
        tarball.pack({"m": member}, "t", tmp_path / "b.tar")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_heads_that_cannot_be_read_are_one_line(tmp_path, content):
    path = tmp_path / "heads"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EvidenceProblem, match="cannot be read"):
        list(sealed.handed_out(tmp_path, path))
