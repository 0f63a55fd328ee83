"""Rules about being faster: by how much, on every case, against the vendor, in the application."""

from collections.abc import Sequence
from decimal import Decimal
from math import log

import msgspec

from kerneltrial.decide.amounts import decimal, factor, percent, plain, plural
from kerneltrial.decide.grounds import Grounds
from kerneltrial.inputs.products import product_of
from kerneltrial.measure.statistics import below_p, holm
from kerneltrial.records.confirmation import Confirmed, ConfirmedCase, NotTimed, VendorSpeed
from kerneltrial.records.decision import Failed, Passed, RuleName, RuleResult, Unknown
from kerneltrial.records.record import Interval
from kerneltrial.records.residency import AsStated

_NO_PRODUCT = "time a vendor's kernel beside the winner, or say in policy.no_vendor why there is none for this contract"
_ON_GPU = "run the trial on a machine with the GPU that production uses"
_MORE = "a new trial with more confirmation processes"
_LOOK = (
    "a person finds out how the kernel stays below the floor (fewer operations, tensor cores and a warm L2 are honest "
    "ways; skipped work is not) and names the case in policy.waive_floor"
)
_STEADY = "find out what moves the card (heat, clocks, other work on it), then confirm in a new trial"
_FINER = "a new trial with a clock that reads many calls at once (protocol.clock: auto)"
_WHOLE, _ANY = Decimal("0.999"), Decimal(2000)  # half a step is all of a latency: the ratio may be any
_NO_EVIDENCE = frozenset({"events-10-100"})


def confirmed_speedup(grounds: Grounds) -> RuleResult:
    """The whole interval of the speedup lies above 1 plus the minimum effect; wholly below it is a failure.

    Where the ratio moved while it was measured, the answer must be the same after another move of that size; and where
    the clock reads in steps, after as much as these can hide.
    """
    rule: RuleName = "confirmed_speedup"
    least = 1 + grounds.terms.now.policy.minimum_effect
    asked = f"a speedup above {plain(least)}×, at the lower end of its interval"
    outcome = grounds.confirmation.outcome
    if not isinstance(outcome, Confirmed):
        return _not_timed(rule, asked, grounds)
    seen = f"{shown(outcome.geometric_mean)}, geometric mean over {plural(len(outcome.cases), 'performance case')}"
    low, high = decimal(outcome.geometric_mean.low), decimal(outcome.geometric_mean.high)
    if not (low > least or high < least):
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_MORE)
    moved = max((_moved(case) for case in outcome.cases), default=Decimal(0))
    if low / (1 + moved) <= least <= high * (1 + moved):
        seen += f"; {_moving(outcome.cases)}"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_STEADY)
    steps = max((_steps(case) for case in outcome.cases), default=Decimal(0))
    if low / (1 + steps) <= least <= high * (1 + steps):
        seen += f"; {_in_steps(steps)}"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_FINER)
    return (Passed if low > least else Failed)(rule=rule, asked=asked, seen=seen, example=False)


def no_case_worse(grounds: Grounds) -> RuleResult:
    """No performance case loses more than the policy allows.

    To pass, every case must be shown not to lose more: each at the full level, since all have to agree. To fail, one
    must be shown to: by Holm's procedure over all cases, since the worst of many is slow by chance alone. Calls that
    find the L2 as a case states can fail it in the same way; they are read one by one, too coarsely to pass it.
    """
    rule: RuleName = "no_case_worse"
    loss = grounds.terms.now.policy.worst_case_loss
    asked = f"no performance case slower than the baseline by more than {percent(loss)}"
    outcome = grounds.confirmation.outcome
    if not isinstance(outcome, Confirmed) or not outcome.cases:
        return _not_timed(rule, asked, grounds)
    least = 1 - loss
    below = _shown_below(outcome, least)
    if below:
        return Failed(rule=rule, asked=asked, seen="; ".join(below), example=False)
    seen = f"the worst is {_case(min(outcome.cases, key=lambda case: case.speedup.low))}"
    if any(decimal(case.speedup.low) < least for case in outcome.cases):
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_MORE)
    moving = [case for case in outcome.cases if decimal(case.speedup.low) / (1 + _moved(case)) < least]
    if moving:
        seen += f"; {_moving(moving)}"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_STEADY)
    steps = max(_steps(case) for case in outcome.cases)
    if any(decimal(case.speedup.low) / (1 + _steps(case)) < least for case in outcome.cases):
        seen += f"; {_in_steps(steps)}"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_FINER)
    return Passed(rule=rule, asked=asked, seen=seen, example=False)


def _shown_below(outcome: Confirmed, least: Decimal) -> list[str]:
    """Speedups that are shown to be below `least`: Holm over all of them, at the intervals' one-sided level."""
    if least <= 0:  # the policy allows any loss
        return []
    level = (1 - outcome.looked.nominal_confidence) / 2
    figures: list[tuple[str, ConfirmedCase | AsStated, Decimal]] = []
    for case in outcome.cases:
        figures.append((_case(case), case, (1 + _moved(case)) * (1 + _steps(case)) - 1))
        if isinstance(case.stated, AsStated):
            said = f"{case.case}, the L2 as the case states, at {shown(case.stated.speedup)}"
            figures.append((said, case.stated, _moved(case)))
    p_values = [below_p([log(ratio) for ratio in one.process_ratios], log(least)) for _, one, _ in figures]
    fallen = holm(p_values, level)
    return [
        said
        for (said, one, moved), fell in zip(figures, fallen, strict=True)
        if fell and decimal(one.speedup.high) * (1 + moved) < least
    ]


def _moved(case: ConfirmedCase) -> Decimal:
    """By how much the speedup moved within processes, as a share; 0 where that cannot be told from not at all."""
    drift = case.drift
    if drift.low <= 1 <= drift.high:
        return Decimal(0)
    return decimal(max(drift.middle, 1 / drift.middle)) - 1


def _steps(case: ConfirmedCase) -> Decimal:
    """By how much a speedup may be off, as a share, since both latencies are read in steps: half of one on each side.

    More readings or processes do not help where all fall on the same step, and then the interval has no width. CUPTI's
    readings are means of many spans, which begin anywhere within its steps, so these fall out.
    """
    if case.clock == "cupti" or not case.resolution_us:
        return Decimal(0)
    half = decimal(case.resolution_us) / 2
    slow, fast = sorted((half / decimal(case.baseline_warm_us), half / decimal(case.warm_us)))
    return (1 + slow) / (1 - fast) - 1 if fast < _WHOLE else _ANY


def _in_steps(steps: Decimal) -> str:
    return f"the clock reads in steps that can hide {percent(round(steps, 4))} of a ratio"


def _moving(cases: Sequence[ConfirmedCase]) -> str:
    told = ", ".join(f"{case.case} by {factor(case.drift.middle)}" for case in cases if _moved(case))
    return f"the ratio still moved from the first to the last third of a process's rounds: {told}"


def measured_on_gpu(grounds: Grounds) -> RuleResult:
    """The figures are times of a GPU, by a clock that is evidence, and such as the card allows."""
    rule: RuleName = "measured_on_gpu"
    asked = "latencies from a GPU, by a clock that is evidence"
    device, outcome = grounds.lock.device, grounds.confirmation.outcome
    if device.kind != "cuda":
        seen = "the cpu device, which interprets the kernel and counts; counts rank candidates and are not time"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_ON_GPU)
    if not isinstance(outcome, Confirmed) or not outcome.cases:
        return _not_timed(rule, asked, grounds)
    clocks = sorted({case.clock for case in outcome.cases})
    seen = f"{device.name} ({device.arch}), clock: {', '.join(clocks)}"
    if _NO_EVIDENCE.intersection(clocks):
        settled = "a new trial with protocol.clock: auto"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=settled)
    waived = set(grounds.terms.now.policy.waive_floor)
    standing = [finding.detail for case, finding in sorted(outcome.review.items()) if case not in waived]
    if standing:
        seen += f"; a time that the card should not allow asks for review: {'; '.join(standing)}"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_LOOK)
    if outcome.review:
        seen += f"; below the roofline's floor, waived by the policy: {', '.join(sorted(outcome.review))}"
    return Passed(rule=rule, asked=asked, seen=seen, example=False)


def vendor_not_faster(grounds: Grounds) -> RuleResult:
    """No vendor library is faster than the winner, unless the policy waives it by name.

    Where none was timed, the policy can say that there is none for this contract, and why: not of a product, which
    cuBLAS computes.
    """
    rule: RuleName = "vendor_not_faster"
    asked = "no vendor library faster than the winner, unless the policy waives it by name"
    waived = set(grounds.terms.now.policy.waive_vendor)
    vendors = grounds.confirmation.vendors
    if not vendors:
        there_is_one = product_of(grounds.lock.contract) is not None
        nothing = grounds.terms.now.policy.no_vendor.strip()
        if nothing and not there_is_one:
            seen = f"the policy says that no vendor has a kernel for this contract: {nothing}"
            return Passed(rule=rule, asked=asked, seen=seen, example=False)
        settled = "time the vendor's kernel (such as cuBLAS) beside the winner" if there_is_one else _NO_PRODUCT
        absent = [finding.detail for finding in grounds.confirmation.vendors_absent]
        seen = ": ".join(["no vendor library was timed", *(["; ".join(absent)] if absent else [])])
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=settled)
    standing = [vendor for vendor in vendors if vendor.name not in waived]
    seen = "; ".join(_vendor(vendor, vendor.name in waived) for vendor in vendors)
    steps = 1 + _steps_beside(grounds)
    if any(decimal(vendor.speedup.high) * steps < 1 for vendor in standing):
        return Failed(rule=rule, asked=asked, seen=seen, example=False)
    if all(decimal(vendor.speedup.low) / steps >= 1 for vendor in standing):
        return Passed(rule=rule, asked=asked, seen=seen, example=False)
    if any(vendor.speedup.high < 1 for vendor in standing) or all(vendor.speedup.low >= 1 for vendor in standing):
        seen += f"; {_in_steps(steps - 1)}"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_FINER)
    return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_MORE)


def _steps_beside(grounds: Grounds) -> Decimal:
    """As `_steps`, of the winner beside a kernel that is about as fast."""
    outcome = grounds.confirmation.outcome
    cases = outcome.cases if isinstance(outcome, Confirmed) else ()
    beside = (msgspec.structs.replace(case, baseline_warm_us=case.warm_us) for case in cases)
    return max(map(_steps, beside), default=Decimal(0))


def shown(interval: Interval) -> str:
    """A speedup with its interval, in words."""
    confidence = percent(Decimal(repr(interval.confidence)))
    return f"{factor(interval.middle)} ({factor(interval.low)} to {factor(interval.high)} at {confidence} confidence)"


def _case(case: ConfirmedCase) -> str:
    return f"{case.case} at {shown(case.speedup)}"


def _vendor(vendor: VendorSpeed, waived: bool) -> str:
    return f"the winner against {vendor.name}: {shown(vendor.speedup)}" + (", waived by the policy" if waived else "")


def _not_timed(rule: RuleName, asked: str, grounds: Grounds) -> Unknown:
    outcome = grounds.confirmation.outcome
    if isinstance(outcome, NotTimed) and grounds.lock.device.kind == "cuda":
        why = "; ".join(finding.detail for finding in outcome.findings) or "no reason was recorded"
        seen = f"the winner could not be timed again: {why}"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by="run the confirmation again")
    if isinstance(outcome, NotTimed):
        seen = f"no latency on this device; counts give {factor(outcome.ratio)}, which is not a speedup"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=_ON_GPU)
    settled = "a candidate that is right on every public and every sealed case"
    return Unknown(rule=rule, asked=asked, seen="there is no winner to time", example=False, settled_by=settled)
