"""`verify` on the sealed example, tampered with: each fault is one line, and nothing is waited for or printed raw."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kerneltrial.__main__ import main
from kerneltrial.evidence.tarball import unpack

EXAMPLE = Path(__file__).parents[3] / "reports/example/matmul_example-evidence.tar"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return unpack(EXAMPLE, tmp_path_factory.mktemp("example"))


@pytest.fixture
def bundle(whole, tmp_path, monkeypatch):
    shutil.copytree(whole, tmp_path / "bundle")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "bundle"


@pytest.fixture
def results(bundle):
    return bundle / "results/matmul_example"


def verify(capsys, *words):
    status = main(["verify", "bundle", "--recompile", "none", *words])
    said = capsys.readouterr()
    return status, said.out + said.err


def test_an_edited_config_is_a_problem(bundle, results, capsys):
    told = json.loads((results / "config.json").read_bytes())
    told["seed"] += 1
    (results / "config.json").write_text(json.dumps(told))
    status, said = verify(capsys)
    assert status == 1
    assert "config.json: seed is 2, and results/matmul_example/lock.json was made with 1" in said


def as_folder(path):
    path.unlink()
    path.mkdir()


def as_pipe(path):
    path.unlink()
    os.mkfifo(path)


def as_link(path):
    target = path.with_name("moved")
    path.rename(target)
    path.symlink_to(target)


@pytest.mark.parametrize("change", [as_folder, as_pipe, as_link])
@pytest.mark.parametrize("name", ["decision.json", "config.json", "chain.jsonl", "journal/lock.jsonl"])
def test_what_is_no_plain_file_is_one_line(bundle, results, capsys, change, name):
    change(results / name)
    status, said = verify(capsys)
    assert status == 3
    assert f"results/matmul_example/{name}: is a " in said
    assert said.count("\n") == 1


def test_names_are_printed_escaped(bundle, capsys):
    (bundle / "a\x1b[31m\n\nall whole, every link holds").write_text("")
    status, said = verify(capsys)
    assert status == 1
    assert "\x1b" not in said
    assert "a\\x1b[31m\\n\\nall whole" in said


@pytest.mark.parametrize("words", ["--keys", "--heads"])
def test_a_file_that_is_not_there_is_said_at_once(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    assert main(["verify", "no-bundle.tar", words, "nosuch"]) == 3
    said = capsys.readouterr().err
    assert f"{words} " in said
    assert said.count("\n") == 1


def test_the_script_says_that_there_is_no_such_file_of_keys():
    script = Path(__file__).parents[3] / "workflow/kerneltrial/evidence/templates/verify.sh"
    done = subprocess.run(["sh", str(script), "/nosuch"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "/nosuch: there is no such file of keys" in done.stderr


def test_the_script_shows_names_of_a_bundle_set_in_and_plain(bundle, tmp_path):
    script = Path(__file__).parents[3] / "workflow/kerneltrial/evidence/templates/verify.sh"
    shutil.copyfile(script, bundle / "verify.sh")
    (bundle / "a\x1b[31m\nok           bytes: all whole").write_text("")
    done = subprocess.run(
        ["sh", "verify.sh", str(EXAMPLE.parent / "allowed_signers")], cwd=bundle, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    assert "all whole" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.startswith("ok") and "all whole" in line]
