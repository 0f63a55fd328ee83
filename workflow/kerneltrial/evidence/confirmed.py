"""A confirmation is worked out again from the samples that it names, and where it stopped from its protocol."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kerneltrial.devices.device import Samples
from kerneltrial.evidence.alike import same
from kerneltrial.evidence.measured_as import Beside
from kerneltrial.measure.confirm import enough, figures
from kerneltrial.measure.roofline import under_floor
from kerneltrial.measure.sequential import looks
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.roofline import NOT_ASKED, Floor, NoFloor
from kerneltrial.store.canonical import builtins, convert

_VENDORS = ("vendors", "vendors_absent")
Drawn = Mapping[str, Sequence[Samples]]


def confirmation_problems(body: Mapping[str, Any], beside: Beside) -> Iterator[str]:
    """What a confirmation says and does not follow from the samples of its processes."""
    outcome = body["outcome"]
    if outcome["state"] != "no_winner" and outcome["valid"] != (not outcome["findings"]):
        yield "valid of the confirmation: not what its findings say"
    if outcome["state"] != "confirmed":
        return
    named = {case["case"]: case["samples"] for case in outcome["cases"]}
    wanted = [case["name"] for case in beside.lock["cases"]["cases"] if case["kind"] == "performance"]
    if list(named) != wanted:
        yield f"the confirmation is of the cases {', '.join(named)}, the lock's performance cases are " + ", ".join(
            wanted
        )
        return
    if any(name not in beside.measured for names in named.values() for name in names):
        return  # named as missing elsewhere
    drawn = {
        case: [convert(Samples, beside.measured[name].value["samples"]) for name in names]
        for case, names in named.items()
    }
    protocol = convert(Protocol, beside.lock["protocol"])
    if len({len(samples) for samples in drawn.values()}) != 1:
        yield "the confirmation has more processes for one case than for another"
        return
    again = figures(drawn, named, protocol, convert(dict[str, Floor | NoFloor], dict(beside.floors)))
    told = {**{key: outcome[key] for key in ("cases", "geometric_mean", "looked")}, **{k: body[k] for k in _VENDORS}}
    for key, value in told.items():
        if not same(value, builtins(getattr(again, key))):
            yield f"{key.replace('_', ' ')} of the confirmation: not what follows from the samples of its processes"
    yield from _found(outcome, named, beside)
    yield from _stopped(drawn, protocol)


def _found(outcome: Mapping[str, Any], named: Mapping[str, Sequence[str]], beside: Beside) -> Iterator[str]:
    """What was wrong with timed launches, and which latencies lie under the roofline's floor.

    Judging on fresh values finds at most one thing, which stands in front; it leaves nothing that it could be worked
    out from again.
    """
    faults = [
        fault for names in named.values() for name in names for fault in beside.measured[name].value.get("faults", ())
    ]
    found = list(outcome["findings"])
    if found[max(0, len(found) - len(faults)) :] != faults or len(found) > len(faults) + 1:
        yield "findings of the confirmation: not those of its timed launches"
    floors = convert(dict[str, Floor | NoFloor], dict(beside.floors))
    under = {
        c["case"]: under_floor(c["case"], c["warm_us"], floors.get(c["case"], NOT_ASKED)) for c in outcome["cases"]
    }
    review = {case: builtins(finding) for case, finding in under.items() if finding is not None}
    if not same(outcome.get("review", {}), review):
        yield "review of the confirmation: not what follows from its latencies and the roofline's floors"


def _stopped(drawn: Drawn, protocol: Protocol) -> Iterator[str]:
    """Whether a confirmation stopped where the plan of its protocol does."""
    count = len(next(iter(drawn.values())))
    if not enough(drawn, protocol):
        yield "the confirmation ended where the protocol's plan does not stop"
        return
    for fewer in looks(protocol.confirmation_processes, protocol.confirmation_looks):
        if fewer < count and enough({case: samples[:fewer] for case, samples in drawn.items()}, protocol):
            yield f"the confirmation went on after {fewer} processes, where the protocol's plan stops"
