"""Each measurement that a record names is of what the record names it for: its key says of what it is.

A measurement is stored under binaries, plans, case, protocol, card, contract, role and clock. Figures that follow from
samples say nothing where these are another candidate's, another baseline's, or another trial's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kerneltrial.inputs.holdout import sealed_seed
from kerneltrial.records.envelope import Envelope
from kerneltrial.store.canonical import canonical
from kerneltrial.store.measurements import Entry

Named = tuple[str, str, Mapping[str, Any]]
"""A measurement's digest, what a record names it for in words, and the key that it must have."""

_CONDITIONS = ("protocol", "device", "contract")


@dataclass(frozen=True)
class Beside:
    """What figures are held against: measurements by digest, the lock, floors by case, kernels by candidate.

    A kernel is its binary's digest and its plan, as measurements are stored under; `baseline` is that of the
    qualification. `salt` is empty where it is not revealed.
    """

    measured: Mapping[str, Entry]
    lock: Mapping[str, Any]
    floors: Mapping[str, Any]
    kernels: Mapping[str, Mapping[str, Any]]
    baseline: Mapping[str, Any]
    salt: bytes = b""


def kernels_of(records: Mapping[str, Envelope]) -> dict[str, dict[str, Any]]:
    """Binary and plan of each candidate that was built, by its id."""
    proposals = [e.body["attempts"] for e in records.values() if e.stage == "propose"]
    plans = {a["candidate"]["id"]: a["candidate"]["plan"] for some in proposals for a in some if "candidate" in a}
    built = [entry for e in records.values() if e.stage == "build" for entry in e.body["candidates"]]
    return {
        b["candidate"]: kernel_of(b, plans[b["candidate"]])
        for b in built
        if b["state"] == "built" and b["candidate"] in plans
    }


def kernel_of(built: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, Any]:
    """What measurements of a build and its plan are stored under."""
    return {"binary": built["cubin"].get("digest", built["ptx"]), "plan": plan}


def foreign_measurements(stage: str, body: Mapping[str, Any], beside: Beside) -> Iterator[str]:
    """Measurements that a record names for what they are not of; those that are missing are named elsewhere."""
    if not beside.baseline:
        return  # there is no qualification, which is named elsewhere
    named = {"qualify": _qualified, "time": _searched, "confirm": _confirmed}.get(stage)
    for name, words, key in named(body, beside) if named else ():
        if name in beside.measured and canonical(beside.measured[name].key) != canonical(key):
            yield f"measurement {name} is not that of {words}"


def _qualified(body: Mapping[str, Any], beside: Beside) -> Iterator[Named]:
    performance = body["performance"]
    for case, name in performance["samples"].items():
        own = _own(performance["kind"], beside.baseline, beside)
        yield name, f"the baseline on case {case}", {**own, **_conditions(case, beside)}


def _searched(body: Mapping[str, Any], beside: Beside) -> Iterator[Named]:
    for entry in body["candidates"]:
        candidate = entry["candidate"]
        for case in entry["cases"] if entry["state"] in ("counted", "timed") and candidate in beside.kernels else ():
            own = _own("counts" if entry["state"] == "counted" else "latency", beside.kernels[candidate], beside)
            words = f"candidate {candidate[:12]} on case {case['case']}"
            yield case["samples"], words, {**own, **_conditions(case["case"], beside)}


def _own(kind: str, kernel: Mapping[str, Any], beside: Beside) -> dict[str, Any]:
    """The part of a key of the search that says which kernel was measured, and how."""
    if kind == "counts":
        return {"counts": kernel}
    asked = beside.lock["protocol"]["clock"]
    clock = "graph" if asked == "auto" else asked
    return {"samples": kernel, "beside": beside.baseline, "role": "search", "clock": clock}


def _confirmed(body: Mapping[str, Any], beside: Beside) -> Iterator[Named]:
    """The processes of a confirmation: of the winner beside the baseline, on values that the salt alone gives."""
    outcome = body["outcome"]
    winner = outcome.get("winner", "")
    if outcome["state"] != "confirmed" or winner not in beside.kernels:
        return
    pair = {"samples": beside.kernels[winner], "beside": beside.baseline}
    for case in outcome["cases"]:
        conditions = _conditions(case["case"], beside)
        conditions["case"] = {**conditions["case"], "seed": _seed(winner, case, beside)}
        for process, name in enumerate(case["samples"]):
            own = {**pair, "role": f"confirmation {process}", "clock": case["clock"]}
            yield name, f"process {process} of the winner on case {case['case']}", {**own, **conditions}


def _seed(winner: str, case: Mapping[str, Any], beside: Beside) -> Any:
    """The case's seed of a confirmation; where the salt is not known, that of the first process for all."""
    if beside.salt:
        return sealed_seed(beside.salt, f"confirmation {winner} {case['case']}")
    first = beside.measured.get(case["samples"][0])
    return first.key["case"].get("seed") if first else None


def _conditions(case: str, beside: Beside) -> dict[str, Any]:
    of_lock = {one["name"]: one for one in beside.lock["cases"]["cases"]}
    return {"case": of_lock[case], **{name: beside.lock[name] for name in _CONDITIONS}}
