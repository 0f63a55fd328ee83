"""A try on a card, with doubles for the card: the ratio is what the stage `time` would give, a fault is a value."""

from types import SimpleNamespace
from typing import Any

import pytest

from kerneltrial.devices.device import Samples
from kerneltrial.measure.rounds import case_latency
from kerneltrial.measure.statistics import geometric_mean
from kerneltrial.records.case import Case
from kerneltrial.records.proposal import TryRight, TryWrong
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.roofline import NOT_ASKED
from kerneltrial.stages import trying
from kerneltrial.stages.measuring import Drawn
from kerneltrial.store.measurements import Stored

CASES = tuple(Case(name=name, kind="performance", dimensions={"n": 1}) for name in ("small", "large"))
WRONG = Finding(reason=Reason.WRONG_VALUES, detail="timed outputs are wrong")


def samples(factor: float) -> Samples:
    a = (10.0, 10.4, 9.8)
    warm = {"a": a, "a2": a, "b": tuple(value / factor for value in a)}
    return Samples(
        clock="graph", resolution_us=0.01, calls_per_sample=50, warm_us=warm, cold_us=warm, outputs=(),
        device_state={}, discarded=0,
    )  # fmt: skip


def measured(monkeypatch: pytest.MonkeyPatch, faults: tuple[Finding, ...] = ()) -> Any:
    found = {
        name: Stored(value=Drawn(samples=samples(factor), faults=faults), digest="0" * 64)
        for name, factor in (("small", 1.2), ("large", 1.5))
    }
    monkeypatch.setattr(trying, "samples_of", lambda *_: found)
    lock = SimpleNamespace(device=SimpleNamespace(kind="cuda"), cases=SimpleNamespace(cases=CASES))
    return trying._measured(SimpleNamespace(lock=lock), None, None, SimpleNamespace(answers=None)), found


def test_the_ratio_is_that_of_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    told, found = measured(monkeypatch)
    cases = [case_latency(n, s.value.samples, s.digest, 0.95, NOT_ASKED) for n, s in found.items()]
    assert told.outcome == TryRight(ratio=geometric_mean([case.speedup.middle for case in cases]))
    assert told.outcome.ratio == pytest.approx((1.2 * 1.5) ** 0.5)


def test_wrong_outputs_of_timed_launches_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told, _ = measured(monkeypatch, (WRONG,))
    assert told.outcome == TryWrong(stage="time", reason=Reason.WRONG_VALUES, detail="timed outputs are wrong")
