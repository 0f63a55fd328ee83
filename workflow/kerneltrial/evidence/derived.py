"""Figures that follow from stored measurements are worked out again, by the same pure functions."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kerneltrial.devices.device import Samples
from kerneltrial.measure.score import score
from kerneltrial.measure.statistics import geometric_mean, latency_us, round_log_ratios
from kerneltrial.records.counts import Counts
from kerneltrial.records.envelope import Envelope
from kerneltrial.store.canonical import convert, decode, digest
from kerneltrial.store.measurements import Entry

_CLOSE = 1e-9  # relative: the same arithmetic on another machine


def derived_figures(folder: Path, records: Mapping[str, Envelope]) -> Iterator[str]:
    """Counts, scores, latencies and ratios of timing records that do not follow from the measurements they name."""
    measured = _measured(folder)
    baseline = next((e.body["performance"] for e in records.values() if e.stage == "qualify"), None)
    for path, envelope in records.items():
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


def _close(told: float, found: float) -> bool:
    return abs(told - found) <= _CLOSE * max(abs(told), abs(found))
