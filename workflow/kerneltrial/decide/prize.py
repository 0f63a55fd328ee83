"""The prize: the most that any kernel could save, known before the first proposal (DESIGN.md section 8)."""

from decimal import Decimal

from kerneltrial.decide.amounts import exactly, number, rounded
from kerneltrial.decide.cost import people_usd
from kerneltrial.decide.saving import gpu_hours
from kerneltrial.records.prize import KnownPrize, Prize, UnknownPrize
from kerneltrial.records.qualification import BaselineCounts, BaselineLatency, Qualification
from kerneltrial.records.roofline import Floor
from kerneltrial.records.terms import Policy, Prices, Workload, why_example

NO_FLOOR = (
    "0 us a call: no roofline was measured on this card, so the bound takes the whole of the baseline's latency as "
    "saved; no real kernel saves as much"
)


def prize(qualification: Qualification, policy: Policy, prices: Prices, workload: Workload) -> Prize:
    """(baseline latency - floor) x calls x price, against what the pilot's people cost.

    Where even that cannot pay back the people within the horizon, no kernel can: `can_pay_back` is false and the trial
    is NO-GO before a proposer is asked.
    """
    example = bool(why_example(prices, workload))
    performance = qualification.performance
    if isinstance(performance, BaselineCounts):
        unknown = UnknownPrize(
            why="this device counts and has no clock, so the baseline's latency is not known",
            settled_by="run the trial on a machine with the GPU that production uses",
        )
        return Prize(prize=unknown, example=example)
    people = people_usd(prices, workload)
    with exactly():
        hours = gpu_hours(workload.calls_per_month, _above_floor(performance))
        saved = hours * prices.gpu_hour_usd
        needed = people / policy.horizon_months
        known = KnownPrize(
            gpu_hours_per_month=rounded(hours),
            saved_usd_per_month=rounded(saved),
            people_usd=rounded(people),
            needed_usd_per_month=rounded(needed),
            can_pay_back=saved > Decimal(0) and saved * policy.horizon_months >= people,
            floor=_told(performance),
        )
    return Prize(prize=known, example=example)


def _floors(performance: BaselineLatency) -> dict[str, Floor]:
    """Floors that can hold: a baseline below its floor shows that the floor does not bound this case."""
    return {
        case: floor
        for case, floor in performance.floors.items()
        if isinstance(floor, Floor) and floor.floor_us <= performance.cases[case]
    }


def _above_floor(performance: BaselineLatency) -> dict[str, float]:
    """Microseconds of each call that a kernel at the floor would save; all of them where no floor is known."""
    floors = _floors(performance)
    return {case: us - (floors[case].floor_us if case in floors else 0.0) for case, us in performance.cases.items()}


def _told(performance: BaselineLatency) -> str:
    floors = _floors(performance)
    if not floors:
        return NO_FLOOR
    cases = "; ".join(
        f"{case} {number(floors[case].floor_us)} us ({floors[case].bound}: {floors[case].assumes})"
        if case in floors
        else f"{case} 0 us (no floor is known)"
        for case in performance.cases
    )
    return f"{cases}. The contract's bytes and operations over ceilings that were measured on this card"
