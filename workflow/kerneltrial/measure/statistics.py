"""From raw samples to ratios and intervals: pure functions.

The quantity of interest is a ratio of latencies, so everything is done in logarithms and taken back at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb, exp, expm1, fsum, log, sqrt
from statistics import median
from typing import TYPE_CHECKING

from msgspec import UnsetType

from kerneltrial.measure.quantile import student_t, student_t_below
from kerneltrial.records.record import Interval

if TYPE_CHECKING:
    from kerneltrial.devices.device import Samples  # numpy comes with it, and cheap stages need none

_LEAST_US = 1e-3


def round_log_ratios(samples: Samples) -> tuple[float, ...]:
    """Log of baseline over candidate, one a round, warm: above 0 the candidate is faster.

    Each side is the mean of the logs of its readings in the round (A and A'; B, and B' in ABBA order), so that in an
    ABBA round a steady drift falls out.
    """
    return _log_ratios(samples.warm_us)


def stated_log_ratios(samples: Samples) -> tuple[float, ...]:
    """As `round_log_ratios`, of calls that found the L2 as the case states; there must be some.

    A single call may be read as no longer than what lies around it, 0 us: for its logarithm it takes a nanosecond.
    """
    return _log_ratios({key: [max(us, _LEAST_US) for us in row] for key, row in stated_us(samples).items()})


def stated_us(samples: Samples) -> dict[str, tuple[float, ...]]:
    """Latencies of such calls in microseconds, by place; nothing where the case states no residency."""
    return {} if isinstance(samples.stated_us, UnsetType) else samples.stated_us


def _log_ratios(rows: Mapping[str, Sequence[float]]) -> tuple[float, ...]:
    baseline = [rows[key] for key in ("a", "a2")]
    candidate = [rows[key] for key in ("b", "b2") if key in rows]
    return tuple(
        mean_log(above) - mean_log(below)
        for above, below in zip(zip(*baseline, strict=True), zip(*candidate, strict=True), strict=True)
    )


def vendor_log_ratios(samples: Samples, vendor: str) -> tuple[float, ...]:
    """Log of a vendor's latency over the candidate's, one a round, warm: above 0 the candidate is faster."""
    rows = samples.warm_us
    candidate = [rows[key] for key in ("b", "b2") if key in rows]
    return tuple(log(v) - mean_log(own) for v, own in zip(rows[vendor], zip(*candidate, strict=True), strict=True))


def noise_log_ratios(samples: Samples) -> tuple[float, ...]:
    """Log of A over A', one a round: what two readings of the same kernel differ by."""
    return tuple(log(a) - log(b) for a, b in zip(samples.warm_us["a"], samples.warm_us["a2"], strict=True))


def median_interval(values: Sequence[float], confidence: float) -> Interval:
    """The median and a distribution-free interval for it, from order statistics.

    The r-th smallest and the r-th largest of n independent values enclose the median with probability
    1 - 2 P(Binomial(n, 1/2) < r); the largest r that reaches `confidence` is taken (David and Nagaraja, Order
    Statistics, 7.1). Where even the extremes do not reach it, they are taken, and the interval's own `confidence` is
    what they do reach. Rounds within one process are not quite independent, so this interval is for the search's own
    use; what decides is `t_interval` over processes.
    """
    if not values:
        raise ValueError("no values to take a median of")
    ordered = sorted(values)
    count = len(ordered)
    rank, coverage = 0, 0.0
    outside = 0
    for r in range(1, count // 2 + 1):
        outside += comb(count, r - 1)
        reached = 1 - 2 * outside / 2**count
        if reached < confidence and rank:
            break
        rank, coverage = r, reached
        if reached < confidence:
            break
    low, high = (ordered[rank - 1], ordered[count - rank]) if rank else (ordered[0], ordered[-1])
    return Interval(low=low, middle=median(ordered), high=high, confidence=min(confidence, coverage))


def t_interval(values: Sequence[float], confidence: float, least_deviation: float = 0.0) -> Interval:
    """The mean of independent values and Student's t interval for it; needs two or more.

    `least_deviation` is what the values are known to deviate by at least, should they happen to lie closer together.
    """
    count = len(values)
    if count < 2:
        raise ValueError("an interval over processes needs at least two of them")
    mean = fsum(values) / count
    deviation = max(least_deviation, sqrt(fsum((value - mean) ** 2 for value in values) / (count - 1)))
    half = student_t((1 + confidence) / 2, count - 1) * deviation / sqrt(count)
    return Interval(low=mean - half, middle=mean, high=mean + half, confidence=confidence)


def from_logs(interval: Interval) -> Interval:
    """The interval of a ratio, from that of its logarithm."""
    return Interval(
        low=exp(interval.low), middle=exp(interval.middle), high=exp(interval.high), confidence=interval.confidence
    )


def geometric_mean(ratios: Sequence[float]) -> float:
    """The geometric mean of positive ratios."""
    if not ratios:
        raise ValueError("no ratios to take a mean of")
    return exp(fsum(log(ratio) for ratio in ratios) / len(ratios))


def drift_logs(processes: Sequence[Samples]) -> tuple[float, ...]:
    """How the log ratio moved within each process: median of its last third of rounds less that of its first third.

    A card that warms up, or a clock that falls, changes both kernels; what is left in the ratio is what a confirmation
    must not mistake for speed.
    """
    return tuple(_drift(round_log_ratios(samples)) for samples in processes)


def _drift(values: Sequence[float]) -> float:
    third = max(1, len(values) // 3)
    return median(values[-third:]) - median(values[:third])


def saved_share(baseline_us: Sequence[float], weights: Sequence[float], logs: Sequence[Sequence[float]]) -> list[float]:
    """What each process says of the whole workload: the weighted latency saved over the weighted latency.

    Parameters
    ----------
    baseline_us, weights : sequence of float
        By case: the baseline's latency, and how many calls there are.
    logs : sequence of sequences of float
        By case, the median log ratio of each process.

    Returns
    -------
    list of float
        One a process: sum of w a (1 - exp(-r)) over sum of w a; 0 where nothing is called.
    """
    total = fsum(w * a for w, a in zip(weights, baseline_us, strict=True))
    if total <= 0:
        return [0.0 for _ in zip(*logs, strict=True)]
    return [
        fsum(w * a * -expm1(-r) for w, a, r in zip(weights, baseline_us, ratios, strict=True)) / total
        for ratios in zip(*logs, strict=True)
    ]


def below_p(logs: Sequence[float], threshold: float) -> float:
    """How surprising process medians that lie so far below `threshold` would be if the truth were just there.

    The one-sided p-value of Student's t test of the mean; 1 or 0 where all medians are the same.
    """
    count = len(logs)
    mean = fsum(logs) / count
    deviation = sqrt(fsum((value - mean) ** 2 for value in logs) / (count - 1))
    if deviation == 0:
        return 0.0 if mean < threshold else 1.0
    return student_t_below((mean - threshold) / (deviation / sqrt(count)), count - 1)


def holm(p_values: Sequence[float], level: float) -> tuple[bool, ...]:
    """Which hypotheses fall at `level` for all of them together; Holm, Scand. J. Statist. 6 (1979), 65-70."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    fallen = [False] * len(p_values)
    for place, i in enumerate(order):
        if p_values[i] > level / (len(p_values) - place):
            break
        fallen[i] = True
    return tuple(fallen)


def process_medians(processes: Sequence[Samples]) -> tuple[float, ...]:
    """The median log ratio of each process."""
    return tuple(median(round_log_ratios(samples)) for samples in processes)


def noise_medians(processes: Sequence[Samples]) -> tuple[float, ...]:
    """The median log of A over A' of each process."""
    return tuple(median(noise_log_ratios(samples)) for samples in processes)


def place_deviation(noise: Sequence[float]) -> float:
    """By how much one kernel's log latency deviates over processes, from the median log of A over A' of each process.

    A and A' are the same kernel in two places of a process, and where it lies is fixed for the life of one: their
    difference, which is 0 in truth, deviates by the root of two times as much as one of them. The ratio to a candidate
    has its place in it too, and deviates no less (`workflow/adr/0055-noise-floor-of-intervals.md`).
    """
    return sqrt(fsum(value * value for value in noise) / (2 * len(noise)))


def latency_us(samples: Samples, keys: Sequence[str], cold: bool = False) -> float:
    """Median over rounds, in microseconds, of all readings under `keys` that are there."""
    return median_us(samples.cold_us if cold else samples.warm_us, keys)


def median_us(rows: Mapping[str, Sequence[float]], keys: Sequence[str]) -> float:
    """Median of all readings under `keys` that are there, in their unit."""
    return median([value for key in keys if key in rows for value in rows[key]])


def mean_log(values: Sequence[float]) -> float:
    """The mean of the logarithms."""
    return fsum(log(value) for value in values) / len(values)
