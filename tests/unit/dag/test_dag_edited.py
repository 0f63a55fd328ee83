"""An edit of a record by hand goes away, and not in silence; a dry look at what is stale changes nothing."""

from types import SimpleNamespace

import pytest

from kerneltrial.dag import freshness, graph
from kerneltrial.records.envelope import MadeFrom
from kerneltrial.records.validation import Validation
from kerneltrial.store import envelopes

WANT = MadeFrom(code="0" * 64, config={}, inputs={})
OTHER = MadeFrom(code="1" * 64, config={}, inputs={})
PATH = graph.record_path("t", "validate", 1)


@pytest.fixture
def trial(tmp_path, monkeypatch):
    """A trial of one record; its file, and `tidy` on it."""
    monkeypatch.setattr(freshness.graph, "jobs", lambda iterations: [("validate", 1)])
    monkeypatch.setattr(freshness, "made_from", lambda *_: WANT)
    monkeypatch.setattr(freshness.closure, "code_digest", lambda stage: "")
    path = tmp_path / PATH
    path.parent.mkdir(parents=True)
    config = SimpleNamespace(trial="t", iterations=1)
    return SimpleNamespace(root=tmp_path, path=path, tidy=lambda dry=False: freshness.tidy(config, tmp_path, dry))


def written(trial, made_from):
    envelope = envelopes.seal("validate", 1, made_from, Validation(candidates=()))
    envelopes.write(trial.path, envelope)
    return trial.path.read_bytes()


def edited(trial):
    trial.path.write_bytes(trial.path.read_bytes().replace(b"candidates", b"c4ndidates"))


def files(trial):
    return {path: path.read_bytes() for path in trial.root.rglob("*") if path.is_file()}


def aside(trial):
    """Have the record that will be wanted lie aside, and another in its place."""
    honest = written(trial, WANT)
    place = freshness._aside(trial.root, "t", "validate", 1, WANT)
    place.parent.mkdir()
    trial.path.rename(place)
    written(trial, OTHER)
    return honest


def test_what_is_put_back_in_place_of_an_edited_record_is_named(trial, capsys):
    honest = aside(trial)
    edited(trial)
    assert trial.tidy() == [PATH]
    assert trial.path.read_bytes() == honest
    line = capsys.readouterr().err
    assert f"{PATH}: was edited by hand" in line
    assert "is put back from results/t/aside/" in line
    assert line.count("\n") == 1


def test_an_edited_record_that_is_made_anew_is_named(trial, capsys):
    written(trial, WANT)
    edited(trial)
    assert trial.tidy() == [PATH]
    assert not trial.path.exists()
    assert "it is made anew" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["edited", "stale", "kept"])
def test_a_dry_look_names_the_same_and_changes_nothing(trial, how):
    if how == "kept":
        aside(trial)
    else:
        written(trial, OTHER)
    if how == "edited":
        edited(trial)
    before = files(trial)
    assert trial.tidy(dry=True) == [PATH]
    assert files(trial) == before
    assert trial.tidy() == [PATH]
    assert files(trial) != before


def test_a_current_record_is_left_in_peace_and_without_a_word(trial, capsys):
    honest = written(trial, WANT)
    assert trial.tidy() == []
    assert trial.path.read_bytes() == honest
    assert capsys.readouterr().err == ""
