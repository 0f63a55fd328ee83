"""End-to-end evidence that does not follow from the stored runs is named."""

import pytest

from kerneltrial.evidence.applied import application_problems
from kerneltrial.evidence.measured_as import Beside
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


KERNELS = {"baseline": {"binary": "b", "plan": {"of": "baseline"}}, "winner": {"binary": "w", "plan": {"of": "winner"}}}
KEY = {
    "application": builtins(ASKED),
    "files": {"app/app.py": "1" * 64},
    "kernels": list(KERNELS.values()),
    "device": {"name": "H200"},
}
LOCK = {
    "asked": {"end_to_end": builtins(ASKED)},
    "protocol": builtins(Protocol()),
    "files": {"app/app.py": "1" * 64, "baseline.cu": "2" * 64},
    "device": {"name": "H200"},
}


def beside(measured, lock):
    return Beside(
        measured=measured, lock=lock, floors={}, kernels={"w": KERNELS["winner"]}, baseline=KERNELS["baseline"]
    )


def problems(told=None, runs=RUNS, **of):
    stored = ApplicationRuns(runs=runs)
    entry = Entry(key={**KEY, **of}, value=builtins(stored))
    right = builtins(end_to_end(ApplicationRuns(runs=RUNS), ASKED, 0.95, "0" * 64))
    body = {"outcome": {"winner": "w"}, "end_to_end": {**right, **(told or {})}}
    return list(application_problems(body, beside({"0" * 64: entry}, LOCK)))


def test_evidence_that_follows_is_not_named():
    assert problems() == []
    unrun = {"outcome": {"winner": "w"}, "end_to_end": {"state": "none", "why": "not asked"}}
    assert not list(application_problems(unrun, beside({}, {"asked": {}})))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"told": {"baseline_ms": 11.0}}, "not what follows"),
        ({"told": {"processes": 50}}, "not what follows"),
        ({"runs": RUNS[:8]}, "not all of the runs"),
        ({"runs": RUNS[2:] + RUNS[:2]}, "in their order"),
        ({"kernels": [KERNELS["baseline"], {"binary": "another's", "plan": {}}]}, "another kernel than the winner"),
        ({"kernels": [{**KERNELS["baseline"], "plan": {}}, KERNELS["winner"]]}, "another kernel than the baseline"),
        ({"application": {**builtins(ASKED), "invocations": 2}}, "of another application"),
        ({"files": {"app/app.py": "3" * 64}}, "of another application"),
        ({"device": {"name": "L4"}}, "another device"),
    ],
)
def test_what_was_changed_is_named(changes, words):
    assert any(words in line for line in problems(**changes))
