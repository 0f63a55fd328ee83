"""What the page says of a performance case's latencies: warm, cold, as it states, among many, beside the limit."""

from typing import Any

from kerneltrial.decide import amounts
from kerneltrial.records.confirmation import ConfirmedCase, NoThroughput
from kerneltrial.records.residency import AsStated
from kerneltrial.records.roofline import NoFloor, Share
from kerneltrial.records.timing import CaseLatency
from kerneltrial.report.texts import Say


def latencies(case: ConfirmedCase | CaseLatency, by: str, warm: str, say: Say) -> dict[str, Any]:
    """A row of the page: `by` says who measured, `warm` names the arrays that the case states as warm."""
    more = _stated(case, warm, say)
    more += _moving(case) + _throughput(case) if isinstance(case, ConfirmedCase) else ""
    return {
        "case": case.case,
        "baseline": amounts.number(case.baseline_warm_us, 4),
        "best": amounts.number(case.warm_us, 4),
        "speedup": case.speedup,
        "noise": case.noise_floor,
        "cold_baseline": amounts.number(case.baseline_cold_us, 4),
        "cold_best": amounts.number(case.cold_us, 4),
        "limit": f"{100 * case.limit.candidate:.0f} %" if isinstance(case.limit, Share) else "–",
        "note": f"{by}, {say('clock: %(clock)s', clock=case.clock)}{_limit(case.limit)}{more}",
    }


def _stated(case: ConfirmedCase | CaseLatency, warm: str, say: Say) -> str:
    """What a call takes that finds the L2 as the case states, where it states something."""
    found = case.stated
    if not isinstance(found, AsStated):
        return ""
    text = say(
        "with %(warm)s in the L2 and all else in memory %(best)s µs, the baseline's %(baseline)s µs (%(speedup)s)",
        warm=warm,
        best=amounts.number(found.us, 4),
        baseline=amounts.number(found.baseline_us, 4),
        speedup=amounts.factor(found.speedup.middle),
    )
    return f"; {text}"


def _throughput(case: ConfirmedCase) -> str:
    """What a call takes among many, where that differs from a call alone."""
    found = case.throughput
    if isinstance(found, NoThroughput):
        return ""
    best, baseline = (amounts.number(us, 4) for us in (found.candidate_us, found.baseline_us))
    return f"; one call of many in a graph takes {best} µs, the baseline's {baseline} µs"


def _moving(case: ConfirmedCase) -> str:
    """That the ratio moved while it was measured, where that can be told."""
    drift = case.drift
    if drift.low <= 1 <= drift.high:
        return ""
    return (
        f"; from the first to the last third of a process's rounds the speedup moved by {amounts.factor(drift.middle)}"
    )


def _limit(limit: Share | NoFloor) -> str:
    """How near the latencies come to what the card can do."""
    if isinstance(limit, NoFloor):
        return ""
    best, baseline = (f"{100 * share:.0f} %" for share in (limit.candidate, limit.baseline))
    return f"; {best} of the {limit.bound} limit of {amounts.number(limit.floor_us)} µs, the baseline {baseline}"
