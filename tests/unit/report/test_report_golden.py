"""The files for machines are what they were; see tests/golden/regenerate.py for a change that is meant."""

import json

import pytest
from regenerate import FOLDER, NAMES
from trial_pieces import report_inputs
from trial_stories import STORIES

from kerneltrial.records.decision import Decision
from kerneltrial.report.render import contents
from kerneltrial.store.canonical import convert


@pytest.fixture(scope="module", params=STORIES)
def story(request: pytest.FixtureRequest) -> tuple[str, dict[str, bytes]]:
    return request.param, contents(report_inputs(STORIES[request.param]()))


@pytest.mark.parametrize("name", NAMES)
def test_files_are_what_they_were(story: tuple[str, dict[str, bytes]], name: str) -> None:
    told, made = story
    assert made[name].decode() == (FOLDER / told / name).read_text()


def test_decision_file_holds_the_record(story: tuple[str, dict[str, bytes]]) -> None:
    told, made = story
    content = json.loads(made["decision.json"])
    assert content.pop("schema_version") == 1
    assert content.pop("trial") == STORIES[told]().lock.trial
    assert convert(Decision, content) == STORIES[told]().decision


def test_history_ends_at_the_winner(story: tuple[str, dict[str, bytes]]) -> None:
    told, made = story
    history = json.loads(made["history.json"])
    winner = STORIES[told]().decision.winner
    best = [attempt["best_so_far"] for attempt in history["attempts"]]
    assert best[-1] == getattr(winner, "geometric_mean", None)
    known = [figure for figure in best if figure is not None]
    assert known == sorted(known)
    assert sum(row["attempts"] for row in history["trend"]) == len(history["attempts"])
    assert history["trend"][-1]["best_so_far"] == best[-1]
    assert sum(row["proposed"] for row in history["patterns"]) == sum(row["proposed"] for row in history["trend"])
    assert history["patterns"][0]["best"] == best[-1]
