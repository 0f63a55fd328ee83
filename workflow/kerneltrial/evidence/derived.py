"""Figures that follow from stored measurements are worked out again, by the same pure functions."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kerneltrial.devices.device import Samples
from kerneltrial.evidence.alike import close, same
from kerneltrial.evidence.applied import application_problems
from kerneltrial.evidence.confirmed import confirmation_problems
from kerneltrial.evidence.measured_as import Beside, foreign_measurements, kernel_of, kernels_of
from kerneltrial.measure.rounds import case_latency
from kerneltrial.measure.score import score
from kerneltrial.measure.statistics import geometric_mean, latency_us
from kerneltrial.records.counts import Counts
from kerneltrial.records.envelope import Envelope
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.roofline import NOT_ASKED, Floor, NoFloor
from kerneltrial.records.seal import Seal
from kerneltrial.store.canonical import builtins, convert, decode, digest
from kerneltrial.store.measurements import Entry
from kerneltrial.store.signed import Signed


def derived_figures(folder: Path, records: Mapping[str, Envelope]) -> Iterator[str]:
    """Counts, scores, latencies and ratios that do not follow from the measurements that their records name."""
    beside = _beside(folder, records)
    baseline: Mapping[str, Any] = next((e.body["performance"] for e in records.values() if e.stage == "qualify"), {})
    for path, envelope in records.items():
        if beside.lock:
            yield from (f"{path}: {wrong}" for wrong in foreign_measurements(envelope.stage, envelope.body, beside))
        if envelope.stage == "confirm" and beside.lock:
            yield from (f"{path}: {wrong}" for wrong in confirmation_problems(envelope.body, beside))
            yield from (f"{path}: {wrong}" for wrong in application_problems(envelope.body, beside))
        if envelope.stage == "qualify" and not _baseline_follows(baseline, beside):
            yield f"{path}: figures of the baseline do not follow from its measurements"
        for entry in envelope.body["candidates"] if envelope.stage == "time" else ():
            if entry["state"] in ("counted", "timed") and not _follows(entry, beside, baseline):
                yield f"{path}: figures of candidate {entry['candidate'][:12]} do not follow from its measurements"


def _beside(folder: Path, records: Mapping[str, Envelope]) -> Beside:
    bodies = {envelope.stage: envelope.body for envelope in records.values() if envelope.iteration == 0}
    qualified = bodies.get("qualify", {})
    return Beside(
        measured=_measured(folder),
        lock=bodies.get("lock", {}),
        floors=qualified.get("performance", {}).get("floors", {}),
        kernels=kernels_of(records),
        baseline=kernel_of(qualified["baseline"], qualified["baseline_plan"]) if qualified else {},
        salt=_salt(folder),
    )


def _salt(folder: Path) -> bytes:
    """The salt, where it is revealed or this is the trial's own folder; that it is the one is looked at elsewhere."""
    signed, private = Signed(folder), folder / "private" / "holdout-salt"
    if signed.seal.is_file():
        return bytes.fromhex(decode(Seal, signed.seal.read_bytes()).salt)
    return private.read_bytes() if private.is_file() else b""


def _measured(folder: Path) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for path in folder.glob("measurements/*.json"):
        data = path.read_bytes()
        try:
            found[digest(data)] = decode(Entry, data)
        except ValueError:
            continue
    return found


def _baseline_follows(performance: Mapping[str, Any], beside: Beside) -> bool:
    for case, name in performance.get("samples", {}).items():
        if name not in beside.measured:
            continue  # named as missing elsewhere
        value = beside.measured[name].value
        if performance["kind"] == "counts":
            found = score(convert(Counts, value))
        else:
            found = latency_us(convert(Samples, value["samples"]), ("a", "a2"))
        if not close(performance["cases"][case], found):
            return False
    return True


def _follows(entry: dict[str, Any], beside: Beside, baseline: Mapping[str, Any]) -> bool:
    ratios = []
    for case in entry["cases"]:
        if case["samples"] not in beside.measured:
            return True  # named as missing elsewhere
        value = beside.measured[case["samples"]].value
        if entry["state"] == "counted":
            follows, ratio = _counts_follow(case, value, beside, baseline), case["ratio"]
        else:
            follows, ratio = _latencies_follow(case, value["samples"], beside), case["speedup"]["middle"]
        if not follows:
            return False
        ratios.append(ratio)
    return close(entry["geometric_mean"], geometric_mean(ratios))


def _counts_follow(case: dict[str, Any], value: Any, beside: Beside, baseline: Mapping[str, Any]) -> bool:
    own = score(convert(Counts, value))
    base = beside.measured.get(baseline.get("samples", {}).get(case["case"], ""))
    other = score(convert(Counts, base.value)) if base is not None else case["baseline_score"]
    return (
        case["counts"] == value
        and close(case["score"], own)
        and close(case["baseline_score"], other)
        and close(case["ratio"], other / own)
    )


def _latencies_follow(case: dict[str, Any], samples: Any, beside: Beside) -> bool:
    """Every figure of a case: medians warm and cold, both intervals, the share of the limit, the card's state."""
    if not beside.lock:
        return True  # named as missing elsewhere
    confidence = float(convert(Protocol, beside.lock["protocol"]).confidence)
    floor = convert(dict[str, Floor | NoFloor], dict(beside.floors)).get(case["case"], NOT_ASKED)
    again = case_latency(case["case"], convert(Samples, samples), case["samples"], confidence, floor)
    return same(case, builtins(again))
