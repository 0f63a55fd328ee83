"""A confirmation's figures are worked out again from the samples of its processes, and so is where it stopped."""

from random import Random
from typing import Any

import msgspec
import pytest

from kerneltrial.devices.device import Samples
from kerneltrial.evidence.derived import derived_figures
from kerneltrial.measure.confirm import figures
from kerneltrial.records.confirmation import Confirmation, Confirmed
from kerneltrial.records.envelope import Envelope, MadeFrom
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.reason import Finding
from kerneltrial.records.record import Record
from kerneltrial.records.roofline import Floor
from kerneltrial.store.canonical import builtins
from kerneltrial.store.measurements import Measurements

FLOORS = {"square": Floor(floor_us=2.0, bound="fp32", assumes="ordinary units")}
PROTOCOL = Protocol()


class Drawn(Record):
    samples: Samples
    faults: tuple[Finding, ...] = ()


def process(case: str, number: int, spread: float) -> Samples:
    """Ten rounds of 10 us against 8 us; a process's own factor has this spread."""
    random = Random(f"{case} {number}")
    own = 1 + random.gauss(0, spread)
    rows = {key: tuple(us * (1 + random.gauss(0, 1e-4)) for _ in range(10)) for key, us in (("a", 10.0), ("a2", 10.0))}
    rows |= {key: tuple(8.0 * own * (1 + random.gauss(0, 1e-4)) for _ in range(10)) for key in ("b", "b2", "cublas")}
    return Samples(
        clock="graph", resolution_us=0.01, calls_per_sample=50, warm_us=rows, cold_us=rows, outputs=(),
        device_state={}, discarded=0,
    )  # fmt: skip


def trial(folder, processes: int = 5, spread: float = 1e-4) -> dict[str, Envelope]:
    """The records of a trial that confirmed its winner in so many processes."""
    store = Measurements(folder / "measurements")
    stored = {
        case: [
            store.once({"case": case, "n": n}, lambda c=case, n=n: Drawn(samples=process(c, n, spread)), Drawn)
            for n in range(processes)
        ]
        for case in ("square", "wide")
    }
    found = figures(
        {case: [s.value.samples for s in several] for case, several in stored.items()},
        {case: [s.digest for s in several] for case, several in stored.items()},
        PROTOCOL,
        FLOORS,
    )
    outcome = Confirmed(
        winner="a" * 64, cases=found.cases, geometric_mean=found.geometric_mean, looked=found.looked, valid=True,
        findings=(),
    )  # fmt: skip
    confirmation = Confirmation(outcome=outcome, vendors=found.vendors, vendors_absent=found.vendors_absent)
    bodies = {
        "lock": {"protocol": builtins(PROTOCOL)},
        "qualify": {"performance": {"floors": builtins(FLOORS)}},
        "confirm": builtins(confirmation),
    }
    made_from = MadeFrom(code="0" * 64, config={}, inputs={})
    return {
        f"{stage}.json": Envelope(
            schema_version=1, stage=stage, iteration=0, made_from=made_from, body=body, sha256="0" * 64
        )
        for stage, body in bodies.items()
    }


def test_what_follows_from_the_samples_is_left_in_peace(tmp_path):
    records = trial(tmp_path)
    assert records["confirm.json"].body["vendors"][0]["name"] == "cublas"
    assert list(derived_figures(tmp_path, records)) == []


def edited(records: dict[str, Envelope], *path: Any, to: Any) -> dict[str, Envelope]:
    inner = records["confirm.json"].body
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return records


@pytest.mark.parametrize(
    ("path", "to", "named"),
    [
        (("outcome", "geometric_mean", "low"), 1.2501, "geometric mean"),
        (("outcome", "cases", 1, "speedup", "high"), 1.3, "cases"),
        (("outcome", "cases", 0, "process_ratios", 2), 1.31, "cases"),
        (("outcome", "cases", 0, "drift", "middle"), 1.5, "cases"),
        (("outcome", "cases", 0, "limit", "candidate"), 0.9, "cases"),
        (("outcome", "cases", 0, "warm_us"), 7.9, "cases"),
        (("outcome", "looked", "nominal_confidence"), 0.9, "looked"),
        (("vendors", 0, "speedup", "middle"), 1.1, "vendors"),
        (("vendors",), [], "vendors"),
    ],
)
def test_a_figure_that_does_not_follow_is_named(tmp_path, path, to, named):
    (problem,) = derived_figures(tmp_path, edited(trial(tmp_path), *path, to=to))
    assert problem.startswith(f"confirm.json: {named} of the confirmation")


def test_a_process_that_was_left_out_is_seen(tmp_path):
    assert any("does not stop" in line for line in derived_figures(tmp_path, trial(tmp_path, processes=4)))


def test_processes_that_the_plan_did_not_ask_for_are_seen(tmp_path):
    (problem,) = derived_figures(tmp_path, trial(tmp_path, processes=10))
    assert "went on after 5 processes" in problem


def test_a_noisy_confirmation_goes_on_to_its_last_look(tmp_path):
    assert list(derived_figures(tmp_path, trial(tmp_path, processes=10, spread=0.01))) == []
    early = list(derived_figures(tmp_path / "early", trial(tmp_path / "early", processes=5, spread=0.01)))
    assert [line for line in early if "does not stop" in line]


def test_another_protocol_gives_other_intervals(tmp_path):
    records = trial(tmp_path)
    lock = records["lock.json"]
    looser = msgspec.structs.replace(lock, body={"protocol": {**lock.body["protocol"], "confidence": "0.9"}})
    assert len(list(derived_figures(tmp_path, {**records, "lock.json": looser}))) >= 3
