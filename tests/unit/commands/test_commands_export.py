"""`kerneltrial export loader` on the records of a told trial."""

import importlib
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from trial_stories import STORIES

from kerneltrial.__main__ import main
from kerneltrial.dag import graph
from kerneltrial.evidence import members
from kerneltrial.records.build import Built, Cubin
from kerneltrial.records.decision import Winner
from kerneltrial.records.envelope import MadeFrom
from kerneltrial.store import envelopes
from kerneltrial.store.canonical import canonical, digest
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
    inputs: dict[str, str] = {}
    for stage, number, body in sorted(records, key=lambda record: record[0] == "decide"):
        name = graph.record_path(trial, stage, number)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        made_from = MadeFrom(code="0" * 64, config={}, inputs=inputs if stage == "decide" else {})
        envelope = envelopes.seal(stage, number, made_from, body)
        inputs[name] = envelopes.body_digest(envelope)
        envelopes.write(root / name, envelope)
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


def _resealed(path: Path, change: Any) -> None:
    """Edit a record, and give it the digest of what it says now: as whoever knows the form can."""
    envelope = envelopes.read(path)
    assert envelope is not None
    body = msgspec.json.decode(msgspec.json.encode(envelope.body))
    change(body)
    content = {**msgspec.to_builtins(envelope), "body": body}
    content.pop("sha256")
    path.write_bytes(canonical({**content, "sha256": digest(canonical(content))}))


def _plan(body: Any) -> None:
    for attempt in body["attempts"]:
        if attempt["state"] == "proposed":
            attempt["candidate"]["plan"]["variants"][0]["launches"][0]["grid"][0] = "1"


EDITS: dict[str, tuple[str, Any]] = {
    "the contract's range": ("lock", lambda body: body["contract"]["dimensions"]["M"].update(maximum=10**6)),
    "the winner's plan": ("propose", _plan),
    "the winner's binary": ("build", lambda body: [one.update(ptx="a" * 64) for one in body["candidates"]]),
    "the baseline's plan": ("qualify", lambda body: body["baseline_plan"]["variants"][0].update(when="0")),
}


@pytest.mark.parametrize("what", EDITS)
def test_a_record_that_was_edited_is_exported_as_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    told = _written(tmp_path, "go")
    monkeypatch.chdir(tmp_path)
    assert isinstance(told.decision.winner, Winner)
    stage, change = EDITS[what]
    number = told.decision.winner.iteration if stage in ("propose", "build") else 0
    path = graph.record_path(told.lock.trial, stage, number)
    _resealed(tmp_path / path, change)
    assert main(["export", "loader", "--out", "taken"]) == 3
    line = capsys.readouterr().err
    assert f"{path}: is not the record that the decision was made from" in line
    assert line.count("\n") == 1
    assert not (tmp_path / "taken").exists()


def test_a_plan_that_is_not_the_winners_own_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The decision too was edited, so that it names the edited proposal."""
    told = _written(tmp_path, "go")
    monkeypatch.chdir(tmp_path)
    assert isinstance(told.decision.winner, Winner)
    path = graph.record_path(told.lock.trial, "propose", told.decision.winner.iteration)
    _resealed(tmp_path / path, _plan)
    edited = envelopes.read(tmp_path / path)
    decision = tmp_path / graph.record_path(told.lock.trial, "decide")
    held = envelopes.read(decision)
    assert edited is not None
    assert held is not None
    inputs = {**held.made_from.inputs, path: envelopes.body_digest(edited)}
    made_from = MadeFrom(code="0" * 64, config={}, inputs=inputs)
    envelopes.write(decision, envelopes.seal("decide", 0, made_from, told.decision))
    assert main(["export", "loader", "--out", "taken"]) == 3
    assert "a candidate's id is not that of its source and plan" in capsys.readouterr().err
    assert not (tmp_path / "taken").exists()


def test_a_binary_that_was_altered_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = _written(tmp_path, "go")
    monkeypatch.chdir(tmp_path)
    path = Objects(tmp_path / graph.results(told.lock.trial) / "objects").path(told.qualification.baseline.ptx)
    path.chmod(0o644)
    path.write_bytes(b"another")
    assert main(["export", "torch", "--out", "taken"]) == 3
    line = capsys.readouterr().err
    assert "was changed" in line
    assert line.count("\n") == 1
    assert not list(tmp_path.glob("*taken*"))


@pytest.mark.parametrize("name", ["my-loader", "class", "1st", "a b"])
def test_a_folder_that_python_cannot_import_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    _written(tmp_path, "go")
    monkeypatch.chdir(tmp_path)
    assert main(["export", "loader", "--out", name]) == 3
    assert "is no name that Python can import" in capsys.readouterr().err
    (tmp_path / "led_nowhere").symlink_to("nothing")
    assert main(["export", "loader", "--out", "led_nowhere"]) == 3
    assert "is there already" in capsys.readouterr().err
