"""Figures that follow from stored measurements are worked out again, by the same pure functions."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kerneltrial.devices.device import Samples
from kerneltrial.measure.confirm import enough, figures
from kerneltrial.measure.score import score
from kerneltrial.measure.sequential import looks
from kerneltrial.measure.statistics import geometric_mean, latency_us, round_log_ratios
from kerneltrial.records.counts import Counts
from kerneltrial.records.envelope import Envelope
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.roofline import Floor, NoFloor
from kerneltrial.store.canonical import builtins, convert, decode, digest
from kerneltrial.store.measurements import Entry

_VENDORS = ("vendors", "vendors_absent")
_CLOSE = 1e-9  # relative: the same arithmetic on another machine


def derived_figures(folder: Path, records: Mapping[str, Envelope]) -> Iterator[str]:
    """Counts, scores, latencies and ratios that do not follow from the measurements that their records name."""
    measured = _measured(folder)
    bodies = {envelope.stage: envelope.body for envelope in records.values() if envelope.iteration == 0}
    baseline = bodies.get("qualify", {}).get("performance")
    for path, envelope in records.items():
        if envelope.stage == "confirm" and "lock" in bodies:
            yield from (
                f"{path}: {wrong}" for wrong in _confirmation(envelope.body, measured, bodies["lock"], baseline)
            )
        if envelope.stage != "time":
            continue
        for entry in envelope.body["candidates"]:
            if entry["state"] in ("counted", "timed") and not _follows(entry, measured, baseline):
                yield f"{path}: figures of candidate {entry['candidate'][:12]} do not follow from its measurements"


def _measured(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in folder.glob("measurements/*.json"):
        data = path.read_bytes()
        try:
            found[digest(data)] = decode(Entry, data).value
        except ValueError:
            continue
    return found


def _follows(entry: dict[str, Any], measured: dict[str, Any], baseline: Any) -> bool:
    ratios = []
    for case in entry["cases"]:
        value = measured.get(case["samples"])
        if value is None:
            return True  # named as missing elsewhere
        if entry["state"] == "counted":
            if not _counts_follow(case, value, measured, baseline):
                return False
            ratios.append(case["ratio"])
        else:
            if not _latencies_follow(case, convert(Samples, value["samples"])):
                return False
            ratios.append(case["speedup"]["middle"])
    return _close(entry["geometric_mean"], geometric_mean(ratios))


def _counts_follow(case: dict[str, Any], value: Any, measured: dict[str, Any], baseline: Any) -> bool:
    own = score(convert(Counts, value))
    base = measured.get((baseline or {}).get("samples", {}).get(case["case"], ""))
    beside = score(convert(Counts, base)) if base is not None else case["baseline_score"]
    return (
        case["counts"] == value
        and _close(case["score"], own)
        and _close(case["baseline_score"], beside)
        and _close(case["ratio"], beside / own)
    )


def _latencies_follow(case: dict[str, Any], samples: Samples) -> bool:
    from math import exp
    from statistics import median

    return (
        _close(case["warm_us"], latency_us(samples, ("b", "b2")))
        and _close(case["baseline_warm_us"], latency_us(samples, ("a", "a2")))
        and _close(case["speedup"]["middle"], exp(median(round_log_ratios(samples))))
    )


def _confirmation(body: dict[str, Any], measured: dict[str, Any], lock: dict[str, Any], baseline: Any) -> Iterator[str]:
    """What a confirmation says in numbers and does not follow from the samples of its processes."""
    outcome = body["outcome"]
    if outcome["state"] != "confirmed":
        return
    named = {case["case"]: case["samples"] for case in outcome["cases"]}
    if any(name not in measured for names in named.values() for name in names):
        return  # named as missing elsewhere
    drawn = {case: [convert(Samples, measured[name]["samples"]) for name in names] for case, names in named.items()}
    protocol = convert(Protocol, lock["protocol"])
    floors = convert(dict[str, Floor | NoFloor], (baseline or {}).get("floors", {}))
    again = figures(drawn, named, protocol, floors)
    told = {**{key: outcome[key] for key in ("cases", "geometric_mean", "looked")}, **{k: body[k] for k in _VENDORS}}
    for key, value in told.items():
        if not _same(value, builtins(getattr(again, key))):
            yield f"{key.replace('_', ' ')} of the confirmation: not what follows from the samples of its processes"
    yield from _stopped(drawn, protocol)


def _stopped(drawn: Mapping[str, Sequence[Samples]], protocol: Protocol) -> Iterator[str]:
    """Whether a confirmation stopped where the plan of its protocol does."""
    processes = {len(samples) for samples in drawn.values()}
    if len(processes) != 1 or not enough(drawn, protocol):
        yield "the confirmation ended where the protocol's plan does not stop"
        return
    for fewer in looks(protocol.confirmation_processes, protocol.confirmation_looks):
        before = {case: samples[:fewer] for case, samples in drawn.items()}
        if fewer < max(processes) and enough(before, protocol):
            yield f"the confirmation went on after {fewer} processes, where the protocol's plan stops"


def _same(told: Any, found: Any) -> bool:
    """Equal JSON types, floats to within `_CLOSE`."""
    if isinstance(told, dict) and isinstance(found, dict):
        return told.keys() == found.keys() and all(_same(told[key], found[key]) for key in told)
    if isinstance(told, list) and isinstance(found, list):
        return len(told) == len(found) and all(map(_same, told, found))
    if isinstance(told, float) or isinstance(found, float):
        return _close(float(told), float(found))
    return bool(told == found)


def _close(told: float, found: float) -> bool:
    return abs(told - found) <= _CLOSE * max(abs(told), abs(found))
