"""`kerneltrial export loader` on the records of a told trial."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from trial_stories import STORIES

from kerneltrial.__main__ import main
from kerneltrial.dag import graph
from kerneltrial.evidence import members
from kerneltrial.records.build import Built, Cubin
from kerneltrial.records.decision import Winner
from kerneltrial.records.envelope import MadeFrom
from kerneltrial.store import envelopes
from kerneltrial.store.objects import Objects
from kerneltrial.store.signed import Signed

CLONE = Path(__file__).resolve().parents[3]


def _written(root: Path, story: str) -> Any:
    """The records of a told trial under `root`, as its stages write them, and marks in place of binaries."""
    told = STORIES[story]()
    trial = told.lock.trial
    config = (CLONE / "config.yaml").read_text().replace("trial: matmul_f32", f"trial: {trial}")
    (root / "config.yaml").write_text(config)
    for name in ("kernels", "cases"):
        (root / name).symlink_to(CLONE / name)
    records = [("lock", 0, told.lock), ("qualify", 0, told.qualification), ("decide", 0, told.decision)]
    for one in told.iterations:
        records += [("propose", one.number, one.proposal), ("build", one.number, one.build)]
    for stage, number, body in records:
        path = root / graph.record_path(trial, stage, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        envelopes.write(path, envelopes.seal(stage, number, MadeFrom(code="0" * 64, config={}, inputs={}), body))
    objects = Objects(root / graph.results(trial) / "objects")
    for built in (told.qualification.baseline, *(b for one in told.iterations for b in one.build.candidates)):
        if isinstance(built, Built):
            assert objects.put(f"ptx {built.candidate}".encode()) == built.ptx
            if isinstance(built.cubin, Cubin):
                assert objects.put(f"cubin {built.candidate}".encode()) == built.cubin.digest
    return told


def test_the_package_holds_winner_and_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = _written(tmp_path, "go")
    monkeypatch.chdir(tmp_path)
    assert main(["export", "loader", "--out", "taken"]) == 0
    winner = told.decision.winner
    assert isinstance(winner, Winner)
    assert (tmp_path / "taken/winner.cubin").read_text() == f"cubin {winner.candidate}"
    assert (tmp_path / "taken/baseline.ptx").read_text() == f"ptx {told.qualification.baseline.candidate}"
    assert told.decision.outcome in capsys.readouterr().out
    monkeypatch.syspath_prepend(str(tmp_path))
    package = importlib.import_module("taken")
    assert winner.candidate in str(package.__doc__)
    assert package.KERNEL.choice({"M": 64, "N": 64, "K": 64}) == "winner"
    assert package.KERNEL.choice({"M": 10**6, "N": 64, "K": 64}) == "baseline"
    for name in [name for name in sys.modules if name.split(".")[0] == "taken"]:
        del sys.modules[name]
    assert main(["export", "loader", "--out", "taken"]) == 3
    assert "taken: is there already" in capsys.readouterr().err


def test_a_sealed_trial_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is exported after the seal is no file too many; where it would be one, a line names --out."""
    trial = _written(tmp_path, "go").lock.trial
    monkeypatch.chdir(tmp_path)
    signed = Signed(tmp_path / graph.results(trial))
    signed.folder.mkdir()
    signed.seal.write_text("{}")
    before = members.evidence(tmp_path, trial, ())
    assert main(["export", "loader"]) == 0
    assert list(tmp_path.glob("reports/*/*_loader/plans.py"))
    assert members.evidence(tmp_path, trial, ()) == before
    for place in (f"results/{trial}/mine", f"reports/{trial}/mine", f"results/{trial}/x_loader/.."):
        capsys.readouterr()
        assert main(["export", "loader", "--out", place]) == 3
        line = capsys.readouterr().err
        assert line.count("\n") == 1
    assert main(["export", "loader", "--out", f"results/{trial}/x_loader"]) == 3
    assert "is sealed; name a folder elsewhere with --out" in capsys.readouterr().err


def test_without_a_winner_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = _written(tmp_path, "failures")
    monkeypatch.chdir(tmp_path)
    assert main(["export", "loader"]) == 3
    line = capsys.readouterr().err
    assert "there is no winner to export" in line
    assert line.count("\n") == 1
    assert not (tmp_path / graph.reports(told.lock.trial)).exists()


@pytest.mark.parametrize("story", ["cpu", "go"])
def test_a_package_of_a_trial_without_a_card_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], story: str
) -> None:
    _written(tmp_path, story)
    monkeypatch.chdir(tmp_path)
    assert main(["export", "loader"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("reports/")
    assert ("note: no card was in this trial" in said) == (story == "cpu")
    (package,) = tmp_path.glob("reports/*/*_loader/__init__.py")
    assert ("no card)" in package.read_text()) == (story == "cpu")
