"""A confirmation's figures are worked out again from the samples of its processes, and so is where it stopped."""

from random import Random
from typing import Any

import msgspec
import pytest

from kerneltrial.devices.device import Samples
from kerneltrial.evidence.derived import derived_figures
from kerneltrial.inputs.holdout import sealed_seed
from kerneltrial.measure.confirm import figures
from kerneltrial.measure.roofline import under_floor
from kerneltrial.measure.rounds import case_latency
from kerneltrial.measure.statistics import geometric_mean, latency_us
from kerneltrial.records.confirmation import Confirmation, Confirmed, NoWinner
from kerneltrial.records.decision import Winner
from kerneltrial.records.envelope import Envelope, MadeFrom
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.record import Record
from kerneltrial.records.roofline import NOT_ASKED, Floor
from kerneltrial.records.timing import Timed
from kerneltrial.stages.rederived import of_another_winner
from kerneltrial.store.canonical import builtins
from kerneltrial.store.measurements import Measurements

CASES = ("square", "wide")
WINNER, BINARY = "a" * 64, "b" * 64
BASELINE = {"binary": "baseline", "plan": {}}
SALT = b"salt"
FLOORS = {"square": Floor(floor_us=2.0, bound="fp32", assumes="ordinary units")}
PROTOCOL = Protocol()
CONDITIONS = {"protocol": builtins(PROTOCOL), "device": {"name": "H200"}, "contract": {"name": "product"}}


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
        device_state={}, discarded=0, stated_us=rows if case == CASES[0] else msgspec.UNSET,
    )  # fmt: skip


def key(case: str, role: str, binary: str = BINARY) -> dict[str, Any]:
    seed = 1 if role == "search" else sealed_seed(SALT, f"confirmation {WINNER} {case}")
    return {
        "case": {**of_lock(case), "seed": seed}, "role": role, "samples": {"binary": binary, "plan": {}},
        "beside": BASELINE, "clock": "graph", **CONDITIONS,
    }  # fmt: skip


def of_lock(case: str) -> dict[str, Any]:
    return {"name": case, "kind": "performance", "dimensions": {"n": 1}, "seed": 1}


def baseline_of(store: Measurements) -> dict[str, Any]:
    """The baseline's latency at qualification."""
    stored = {
        case: store.once(key(case, "search", "baseline"), lambda c=case: Drawn(samples=process(c, -1, 0.0)), Drawn)
        for case in CASES
    }
    return {
        "kind": "latency",
        "cases": {case: latency_us(one.value.samples, ("a", "a2")) for case, one in stored.items()},
        "samples": {case: one.digest for case, one in stored.items()},
        "floors": builtins(FLOORS),
    }


def timed_of(store: Measurements, floors) -> dict[str, Any]:
    """The search's own figures of the winner."""
    cases = []
    for name in CASES:
        one = store.once(key(name, "search"), lambda c=name: Drawn(samples=process(c, -2, 0.0)), Drawn)
        cases.append(case_latency(name, one.value.samples, one.digest, 0.95, floors.get(name, NOT_ASKED)))
    mean = geometric_mean([case.speedup.middle for case in cases])
    return builtins(Timed(candidate=WINNER, cases=tuple(cases), geometric_mean=mean))


def trial(
    folder, processes: int = 5, spread: float = 1e-4, faults: tuple[Finding, ...] = (), floors=FLOORS
) -> dict[str, Envelope]:
    """The records of a trial that confirmed its winner in so many processes; `faults` are of one timed launch."""
    store = Measurements(folder / "measurements")
    (folder / "private").mkdir(parents=True)
    (folder / "private" / "holdout-salt").write_bytes(SALT)
    stored = {
        case: [
            store.once(
                key(case, f"confirmation {n}"),
                lambda c=case, n=n: Drawn(
                    samples=process(c, n, spread), faults=faults if (c, n) == (CASES[0], 1) else ()
                ),
                Drawn,
            )
            for n in range(processes)
        ]
        for case in CASES
    }
    found = figures(
        {case: [s.value.samples for s in several] for case, several in stored.items()},
        {case: [s.digest for s in several] for case, several in stored.items()},
        PROTOCOL,
        floors,
    )
    under = {c.case: under_floor(c.case, c.warm_us, floors.get(c.case, NOT_ASKED)) for c in found.cases}
    outcome = Confirmed(
        winner=WINNER, cases=found.cases, geometric_mean=found.geometric_mean, looked=found.looked,
        valid=not faults, findings=faults, review={name: one for name, one in under.items() if one is not None},
    )  # fmt: skip
    confirmation = Confirmation(outcome=outcome, vendors=found.vendors, vendors_absent=found.vendors_absent)
    bodies = {
        "lock": {
            **CONDITIONS,
            "cases": {"cases": [of_lock(name) for name in CASES]},
        },
        "qualify": {
            "performance": {**baseline_of(store), "floors": builtins(floors)},
            "baseline": {"ptx": "p", "cubin": {"digest": BASELINE["binary"]}},
            "baseline_plan": BASELINE["plan"],
        },
        "propose": {"attempts": [{"state": "proposed", "candidate": {"id": WINNER, "plan": {}}}]},
        "build": {"candidates": [{"state": "built", "candidate": WINNER, "ptx": "p", "cubin": {"digest": BINARY}}]},
        "time": {"candidates": [timed_of(store, floors)]},
        "confirm": builtins(confirmation),
    }
    made_from = MadeFrom(code="0" * 64, config={}, inputs={})
    return {
        f"{stage}.json": Envelope(
            schema_version=1,
            stage=stage,
            iteration=int(stage in ("propose", "build", "time")),
            made_from=made_from,
            body=body,
            sha256="0" * 64,
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
        (("outcome", "cases", 0, "stated", "process_ratios", 1), 1.2, "cases"),
        (("outcome", "cases", 0, "stated", "us"), 7.9, "cases"),
        (("outcome", "looked", "nominal_confidence"), 0.9, "looked"),
        (("vendors", 0, "speedup", "middle"), 1.1, "vendors"),
        (("vendors",), [], "vendors"),
        (("outcome", "review"), {"square": {"reason": "under_roofline", "detail": "x"}}, "review"),
        (("outcome", "valid"), False, "valid"),
    ],
)
def test_a_figure_that_does_not_follow_is_named(tmp_path, path, to, named):
    (problem,) = derived_figures(tmp_path, edited(trial(tmp_path), *path, to=to))
    assert problem.startswith(f"confirm.json: {named} of the confirmation")


def test_a_stated_figure_that_was_taken_out_or_put_in_is_named(tmp_path):
    records = trial(tmp_path)
    stated, silent = records["confirm.json"].body["outcome"]["cases"]
    assert "stated" not in silent
    silent["stated"] = stated["stated"]
    assert len(list(derived_figures(tmp_path, records))) == 1
    del silent["stated"]
    assert list(derived_figures(tmp_path, records)) == []
    del stated["stated"]
    assert len(list(derived_figures(tmp_path, records))) == 1


FAULT = Finding(reason=Reason.WRONG_VALUES, detail="a timed launch")
UNDER = {"square": Floor(floor_us=9.0, bound="fp32", assumes="ordinary units")}


def test_a_latency_under_the_floor_whose_review_was_removed_is_named(tmp_path):
    records = trial(tmp_path, floors=UNDER)
    review = records["confirm.json"].body["outcome"]["review"]
    assert list(review) == ["square"]
    assert list(derived_figures(tmp_path, records)) == []
    (problem,) = derived_figures(tmp_path, edited(records, "outcome", "review", to={}))
    assert "review of the confirmation" in problem


@pytest.mark.parametrize("found", [[], [FAULT, FAULT, FAULT], [Finding(reason=Reason.TRAP, detail="another")]])
def test_findings_that_are_not_those_of_the_timed_launches_are_named(tmp_path, found):
    records = trial(tmp_path, faults=(FAULT,))
    assert list(derived_figures(tmp_path, records)) == []
    edited(records, "outcome", "findings", to=builtins(found))
    (problem,) = derived_figures(tmp_path, edited(records, "outcome", "valid", to=not found))
    assert "findings of the confirmation" in problem


def test_what_judging_on_fresh_values_found_stands_in_front(tmp_path):
    records = trial(tmp_path, faults=(FAULT,))
    judged = Finding(reason=Reason.TRAP, detail="on fresh values")
    assert list(derived_figures(tmp_path, edited(records, "outcome", "findings", to=builtins([judged, FAULT])))) == []


def chosen(**outcome):
    winner = Winner(candidate=WINNER, iteration=1, measure="counts", geometric_mean=1.5)
    told = {"state": "not_timed", "winner": WINNER, "ratio": 1.5, "valid": True, "findings": [], **outcome}
    return list(of_another_winner({"outcome": told}, winner))


def test_the_ratio_of_counts_is_that_of_the_winner():
    assert chosen() == []
    assert "ratio" in chosen(ratio=7.5)[0]
    assert "not of the search's winner" in chosen(winner="c" * 64)[0]


def test_a_winner_that_was_hidden_or_made_up_is_named():
    none = NoWinner(why="no candidate was proposed")
    assert list(of_another_winner({"outcome": builtins(none)}, none)) == []
    for told in ({"state": "no_winner", "why": "none held"}, {"state": "not_timed", "winner": WINNER}):
        assert list(of_another_winner({"outcome": told}, none))
    assert chosen(state="no_winner", winner=None)


def test_a_winner_on_a_card_that_could_not_be_timed_again_has_no_ratio():
    winner = Winner(candidate=WINNER, iteration=1, measure="time", geometric_mean=1.5)
    told = {"state": "not_timed", "winner": WINNER, "ratio": 0.0, "valid": False, "findings": [builtins(FAULT)]}
    assert list(of_another_winner({"outcome": told}, winner)) == []
    assert list(of_another_winner({"outcome": {**told, "ratio": 1.5}}, winner))


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
    protocol = {**lock.body["protocol"], "confidence": "0.9"}
    looser = msgspec.structs.replace(lock, body={**lock.body, "protocol": protocol})
    assert len(list(derived_figures(tmp_path, {**records, "lock.json": looser}))) >= 4


def test_a_case_that_was_left_out_is_seen(tmp_path):
    records = trial(tmp_path)
    del records["confirm.json"].body["outcome"]["cases"][1]
    (problem,) = derived_figures(tmp_path, records)
    assert "is of the cases square, the lock's performance cases are square, wide" in problem


def point(records, tmp_path, stage: str, other: dict[str, Any]) -> list[str]:
    """What is said of a record whose samples are the same figures, stored as those of something else."""
    store = Measurements(tmp_path / "measurements")
    number = {"qualify": -1, "time": -2, "confirm": 1}[stage]
    name = store.once(other, lambda: Drawn(samples=process("square", number, 1e-4 * (number > 0))), Drawn).digest
    body = records[f"{stage}.json"].body
    if stage == "confirm":
        body["outcome"]["cases"][0]["samples"][1] = name
    elif stage == "time":
        body["candidates"][0]["cases"][0]["samples"] = name
    else:
        body["performance"]["samples"]["square"] = name
    return list(derived_figures(tmp_path, records))


OTHERS = {
    "kernel": {"samples": {"binary": "c" * 64, "plan": {}}},
    "plan": {"samples": {"binary": BINARY, "plan": {"variants": []}}},
    "baseline": {"beside": {"binary": "slower", "plan": {}}},
    "plan of the baseline": {"beside": {"binary": "baseline", "plan": {"variants": []}}},
    "role": {"role": "choice of a clock"},
    "clock": {"clock": "events"},
    "case": {"case": of_lock("tall")},
    "shape": {"case": {**of_lock("square"), "dimensions": {"n": 2}}},
    "values": {"case": {**of_lock("square"), "seed": 3}},
    "protocol": {"protocol": builtins(Protocol(rounds=10))},
    "card": {"device": {"name": "L4"}},
    "contract": {"contract": {"name": "sum"}},
}


@pytest.mark.parametrize("which", OTHERS)
@pytest.mark.parametrize(
    ("stage", "role", "words"),
    [
        ("confirm", "confirmation 1", "process 1 of the winner on case square"),
        ("time", "search", f"candidate {WINNER[:12]} on case square"),
        ("qualify", "search", "the baseline on case square"),
    ],
)
def test_samples_of_something_else_are_seen(tmp_path, stage, role, words, which):
    """Digest and figures are right, the samples are whole, and they are not those that the record says they are."""
    records = trial(tmp_path)
    binary = BASELINE["binary"] if stage == "qualify" else BINARY
    (problem,) = point(records, tmp_path, stage, {**key("square", role, binary), **OTHERS[which]})
    assert problem.startswith(f"{stage}.json: measurement ")
    assert problem.endswith(f" is not that of {words}")


def test_a_process_that_counts_twice_is_seen(tmp_path):
    records = trial(tmp_path)
    named = records["confirm.json"].body["outcome"]["cases"][0]["samples"]
    named[1] = named[0]
    assert any("is not that of process 1 of the winner" in line for line in derived_figures(tmp_path, records))


def test_without_the_salt_all_processes_must_have_the_same_values(tmp_path):
    records = trial(tmp_path)
    (tmp_path / "private" / "holdout-salt").unlink()
    assert list(derived_figures(tmp_path, records)) == []
    (problem,) = point(records, tmp_path, "confirm", {**key("square", "confirmation 1"), **OTHERS["values"]})
    assert "is not that of process 1" in problem


@pytest.mark.parametrize(
    "path",
    [
        ("cases", 0, "cold_us"),
        ("cases", 1, "baseline_cold_us"),
        ("cases", 0, "speedup", "low"),
        ("cases", 0, "noise_floor", "high"),
        ("cases", 0, "limit", "candidate"),
        ("geometric_mean",),
    ],
)
def test_a_figure_of_the_search_that_does_not_follow_is_named(tmp_path, path):
    records = trial(tmp_path)
    inner = records["time.json"].body["candidates"][0]
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] *= 1.001
    (problem,) = derived_figures(tmp_path, records)
    assert problem == f"time.json: figures of candidate {WINNER[:12]} do not follow from its measurements"


def test_a_latency_of_the_baseline_that_does_not_follow_is_named(tmp_path):
    records = trial(tmp_path)
    records["qualify.json"].body["performance"]["cases"]["wide"] *= 1.01
    (problem,) = derived_figures(tmp_path, records)
    assert problem == "qualify.json: figures of the baseline do not follow from its measurements"
