"""What a faster kernel saves: calls times latency, as GPU hours and dollars a month."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from math import log

from kerneltrial.decide.amounts import US_PER_HOUR, decimal, exactly, rounded
from kerneltrial.measure.statistics import saved_share, t_interval
from kerneltrial.records.confirmation import Confirmed
from kerneltrial.records.decision import Saving
from kerneltrial.records.record import Interval

SpeedupOfCase = tuple[str, float, Interval]
"""Case name, baseline latency in microseconds, speedup with its interval."""


def check_workload(calls: Mapping[str, int], cases: Iterable[str]) -> None:
    """Raise ValueError where the workload names a case that is not a performance case of the trial."""
    known = set(cases)
    foreign = sorted(set(calls) - known)
    if foreign:
        raise ValueError(
            f"workload.calls_per_month names {', '.join(foreign)}, which is no performance case of this trial; "
            f"its cases are {', '.join(sorted(known))}"
        )


def gpu_hours(calls: Mapping[str, int], latency_us: Mapping[str, float]) -> Decimal:
    """GPU hours a month that the calls take: sum of calls x latency; a case without calls weighs nothing."""
    check_workload(calls, latency_us)
    with exactly():
        total = sum((decimal(latency_us[case]) * count for case, count in calls.items()), start=Decimal(0))
        return total / US_PER_HOUR


def saved_hours(calls: Mapping[str, int], speedups: Iterable[SpeedupOfCase]) -> Saving:
    """GPU hours saved a month, unrounded: sum of calls x baseline latency x (1 - 1 / speedup).

    The low end takes the low end of every case at once and the high end every high end: wider than the interval of
    the sum, so it never claims too much.
    """
    cases = list(speedups)
    check_workload(calls, (case for case, _, _ in cases))
    with exactly():
        return Saving(
            low=_hours(calls, ((case, us, interval.low) for case, us, interval in cases)),
            middle=_hours(calls, ((case, us, interval.middle) for case, us, interval in cases)),
            high=_hours(calls, ((case, us, interval.high) for case, us, interval in cases)),
        )


def confirmed_saving(calls: Mapping[str, int], confirmed: Confirmed) -> Saving:
    """GPU hours saved a month by the confirmed winner, unrounded, with Student's t interval over processes.

    The middle is that of `saved_hours`. What disturbs a process disturbs all cases in it, so the share of the whole
    workload's time that is saved is taken within each process, and the interval is that of their mean.
    """
    cases = confirmed.cases
    speedups = [(case.case, case.baseline_warm_us, case.speedup) for case in cases]
    middle = saved_hours(calls, speedups).middle
    weights = [calls.get(case.case, 0) for case in cases]
    logs = [[log(ratio) for ratio in case.process_ratios] for case in cases]
    shares = saved_share([case.baseline_warm_us for case in cases], weights, logs)
    interval = t_interval(shares, confirmed.looked.nominal_confidence)
    with exactly():
        total = gpu_hours(calls, {case.case: case.baseline_warm_us for case in cases})
        half = total * decimal((interval.high - interval.low) / 2)
        return Saving(low=middle - half, middle=middle, high=middle + half)


def _hours(calls: Mapping[str, int], cases: Iterable[tuple[str, float, float]]) -> Decimal:
    total = Decimal(0)
    for case, baseline_us, speedup in cases:
        if not speedup > 0:
            raise ValueError(f"case {case}: a speedup of {speedup} is no ratio of latencies")
        total += calls.get(case, 0) * decimal(baseline_us) * (1 - 1 / decimal(speedup))
    return total / US_PER_HOUR


def priced(saving: Saving, gpu_hour_usd: Decimal) -> Saving:
    """Dollars a month for GPU hours a month, unrounded."""
    with exactly():
        return Saving(
            low=saving.low * gpu_hour_usd, middle=saving.middle * gpu_hour_usd, high=saving.high * gpu_hour_usd
        )


def rounded_saving(saving: Saving) -> Saving:
    """Each figure to a millionth."""
    return Saving(low=rounded(saving.low), middle=rounded(saving.middle), high=rounded(saving.high))
