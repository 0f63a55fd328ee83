"""End-to-end evidence that does not follow from the stored runs is named."""

import pytest

from kerneltrial.evidence.applied import application_problems
from kerneltrial.evidence.confirmed import Beside
from kerneltrial.measure.application import end_to_end, order
from kerneltrial.records.application import ApplicationRun, ApplicationRuns, EndToEndAsked
from kerneltrial.records.protocol import Protocol
from kerneltrial.store.canonical import builtins
from kerneltrial.store.measurements import Entry

ASKED = EndToEndAsked(words=("app",), pairs=5)
RUNS = tuple(
    ApplicationRun(kernel=name, ms=(10.0 if name == "a" else 9.0) + 0.01 * place, wall_ms=20.0)
    for place, name in enumerate(order(5))
)


def problems(told=None, runs=RUNS, binary="winner's"):
    stored = ApplicationRuns(runs=runs)
    lock = {"asked": {"end_to_end": builtins(ASKED)}, "protocol": builtins(Protocol())}
    entry = Entry(key={"kernels": [{"binary": "baseline's"}, {"binary": binary}]}, value=builtins(stored))
    beside = Beside(measured={"0" * 64: entry}, lock=lock, floors={}, binaries={"w": "winner's"})
    right = builtins(end_to_end(ApplicationRuns(runs=RUNS), ASKED, 0.95, "0" * 64))
    body = {"outcome": {"winner": "w"}, "end_to_end": {**right, **(told or {})}}
    return list(application_problems(body, beside))


def test_evidence_that_follows_is_not_named():
    assert problems() == []
    unrun = {"outcome": {"winner": "w"}, "end_to_end": {"state": "none", "why": "not asked"}}
    assert not list(application_problems(unrun, Beside(measured={}, lock={"asked": {}}, floors={}, binaries={})))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"told": {"baseline_ms": 11.0}}, "not what follows"),
        ({"told": {"processes": 50}}, "not what follows"),
        ({"runs": RUNS[:8]}, "not all of the runs"),
        ({"runs": RUNS[2:] + RUNS[:2]}, "in their order"),
        ({"binary": "another's"}, "another kernel than the winner"),
    ],
)
def test_what_was_changed_is_named(changes, words):
    assert any(words in line for line in problems(**changes))
