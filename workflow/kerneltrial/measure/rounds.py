"""The search's own figures: one process a candidate. What a runner drew becomes records, by pure functions."""

from math import exp
from statistics import median

import msgspec

from kerneltrial.devices.device import Samples
from kerneltrial.measure import statistics
from kerneltrial.measure.roofline import share
from kerneltrial.measure.score import score
from kerneltrial.records.counts import Counts
from kerneltrial.records.record import Digest
from kerneltrial.records.residency import AsStated
from kerneltrial.records.roofline import NOT_ASKED, Floor, NoFloor
from kerneltrial.records.timing import CaseCounts, CaseLatency


def without_outputs(samples: Samples) -> Samples:
    """The samples without the outputs of timed launches, which are checked once and are too large to keep."""
    return msgspec.structs.replace(samples, outputs=())


def case_latency(
    case: str, samples: Samples, stored: Digest, confidence: float, floor: Floor | NoFloor = NOT_ASKED
) -> CaseLatency:
    """What the samples of one process say; `stored` is the digest of the measurement that holds them."""
    warm_us = statistics.latency_us(samples, ("b", "b2"))
    baseline_us = statistics.latency_us(samples, ("a", "a2"))
    speedup = statistics.median_interval(statistics.round_log_ratios(samples), confidence)
    noise = statistics.median_interval(statistics.noise_log_ratios(samples), confidence)
    return CaseLatency(
        case=case,
        clock=samples.clock,
        resolution_us=samples.resolution_us,
        samples=stored,
        warm_us=warm_us,
        cold_us=statistics.latency_us(samples, ("b", "b2"), cold=True),
        baseline_warm_us=baseline_us,
        baseline_cold_us=statistics.latency_us(samples, ("a", "a2"), cold=True),
        speedup=statistics.from_logs(speedup),
        noise_floor=statistics.from_logs(noise),
        device_state=samples.device_state,
        limit=share(floor, warm_us, baseline_us),
        stated=stated_latency(samples, confidence),
    )


def stated_latency(samples: Samples, confidence: float) -> AsStated | msgspec.UnsetType:
    """What one process says of calls that find the L2 as the case states; unset where it states nothing."""
    rows = statistics.stated_us(samples)
    if not rows:
        return msgspec.UNSET
    logs = statistics.stated_log_ratios(samples)
    return AsStated(
        us=statistics.median_us(rows, ("b", "b2")),
        baseline_us=statistics.median_us(rows, ("a", "a2")),
        speedup=statistics.from_logs(statistics.median_interval(logs, confidence)),
        process_ratios=(exp(median(logs)),),
    )


def case_counts(case: str, candidate: Counts, baseline: Counts, stored: Digest) -> CaseCounts:
    """What counts say; `stored` is the digest of the candidate's measurement."""
    cost, baseline_cost = score(candidate), score(baseline)
    return CaseCounts(
        case=case,
        samples=stored,
        counts=candidate,
        score=cost,
        baseline_score=baseline_cost,
        ratio=baseline_cost / cost,
    )
