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
    more += _moving(case, say) + _throughput(case, say) if isinstance(case, ConfirmedCase) else ""
    return {
        "case": case.case,
        "baseline": amounts.number(case.baseline_warm_us, 4),
        "best": amounts.number(case.warm_us, 4),
        "speedup": case.speedup,
        "noise": case.noise_floor,
        "cold_baseline": amounts.number(case.baseline_cold_us, 4),
        "cold_best": amounts.number(case.cold_us, 4),
        "limit": f"{100 * case.limit.candidate:.0f} %" if isinstance(case.limit, Share) else "–",
        "note": f"{by}, {say('clock: %(clock)s', clock=case.clock)}{_limit(case.limit, say)}{more}",
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


def _throughput(case: ConfirmedCase, say: Say) -> str:
    """What a call takes among many, where that differs from a call alone."""
    found = case.throughput
    if isinstance(found, NoThroughput):
        return ""
    best, baseline = (amounts.number(us, 4) for us in (found.candidate_us, found.baseline_us))
    text = say(
        "one call of many in a graph takes %(best)s µs, the baseline's %(baseline)s µs", best=best, baseline=baseline
    )
    return f"; {text}"


def _moving(case: ConfirmedCase, say: Say) -> str:
    """That the ratio moved while it was measured, where that can be told."""
    drift = case.drift
    if drift.low <= 1 <= drift.high:
        return ""
    text = say(
        "from the first to the last third of a process's rounds the speedup moved by %(factor)s",
        factor=amounts.factor(drift.middle),
    )
    return f"; {text}"


def _limit(limit: Share | NoFloor, say: Say) -> str:
    """How near the latencies come to what the card can do."""
    if isinstance(limit, NoFloor):
        return ""
    best, baseline = (f"{100 * share:.0f} %" for share in (limit.candidate, limit.baseline))
    text = say(
        "%(best)s of the %(bound)s limit of %(floor)s µs, the baseline %(baseline)s",
        best=best,
        bound=limit.bound,
        floor=amounts.number(limit.floor_us),
        baseline=baseline,
    )
    return f"; {text}"
