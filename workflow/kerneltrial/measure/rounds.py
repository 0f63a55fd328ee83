"""The search's own figures: one process a candidate. Drawn from a runner, then turned into records by pure functions.

A stage stores what was drawn before it computes with it:

    stored = measurements.once(key, lambda: time_candidate(runner, request, values), Samples)
    case_latency("m1024", stored.value, stored.digest, confidence)
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from kerneltrial.devices.device import Binary, Conditions, Samples, TimingRequest, Values
from kerneltrial.inputs.calls import Call
from kerneltrial.measure import statistics
from kerneltrial.measure.score import score
from kerneltrial.records.counts import Counts
from kerneltrial.records.record import Digest
from kerneltrial.records.timing import CaseCounts, CaseLatency


class Timer(Protocol):
    """What times: a `devices.runner.Runner`."""

    def time(self, request: TimingRequest, values: list[Values]) -> Samples: ...


class Counter(Protocol):
    """What counts: a `devices.runner.Runner`."""

    def load(self, binary: Binary) -> object: ...

    def count(self, call: Call, values: Values, conditions: Conditions) -> Counts: ...


def time_candidate(runner: Timer, request: TimingRequest, values: Sequence[Values]) -> Samples:
    """Draw the samples of one candidate and case; `Refused` and `DeviceProblem` pass through."""
    return runner.time(request, list(values))


def count_candidate(runner: Counter, binary: Binary, call: Call, values: Values, conditions: Conditions) -> Counts:
    """Draw the counts of one binary and case; `Refused` and `DeviceProblem` pass through."""
    runner.load(binary)
    return runner.count(call, values, conditions)


def without_outputs(samples: Samples) -> Samples:
    """The samples without the outputs of timed launches, which are checked once and are too large to keep."""
    return msgspec.structs.replace(samples, outputs=())


def case_latency(case: str, samples: Samples, stored: Digest, confidence: float) -> CaseLatency:
    """What the samples of one process say; `stored` is the digest of the measurement that holds them."""
    speedup = statistics.median_interval(statistics.round_log_ratios(samples), confidence)
    noise = statistics.median_interval(statistics.noise_log_ratios(samples), confidence)
    return CaseLatency(
        case=case,
        clock=samples.clock,
        samples=stored,
        warm_us=statistics.latency_us(samples, ("b", "b2")),
        cold_us=statistics.latency_us(samples, ("b", "b2"), cold=True),
        baseline_warm_us=statistics.latency_us(samples, ("a", "a2")),
        baseline_cold_us=statistics.latency_us(samples, ("a", "a2"), cold=True),
        speedup=statistics.from_logs(speedup),
        noise_floor=statistics.from_logs(noise),
        device_state=samples.device_state,
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
