"""When the confirmed saving has paid for the pilot."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from kerneltrial.decide.amounts import MS_PER_HOUR, ceiling, decimal, exactly, rounded
from kerneltrial.decide.cost import people_usd
from kerneltrial.decide.forecast import Pilot, forecast
from kerneltrial.decide.saving import confirmed_saving, priced, rounded_saving
from kerneltrial.records.confirmation import Confirmation, Confirmed, EndToEnd, NotTimed, Seen
from kerneltrial.records.decision import Payback, PaybackNever, PaybackUnknown, Saving
from kerneltrial.records.forecast import Forecast
from kerneltrial.records.terms import Agreed


def payback(
    pilot_usd: Decimal, confirmation: Confirmation, terms: Agreed, seed: int = 0
) -> Payback | PaybackNever | PaybackUnknown:
    """Pilot cost divided by the monthly gross GPU saving, over the confirmed speedup's interval.

    A saving whose interval reaches zero shows no payback: its worse end would be never. `seed` is the forecast's.
    """
    outcome = confirmation.outcome
    if not isinstance(outcome, Confirmed):
        return _not_timed(pilot_usd, isinstance(outcome, NotTimed))
    measured = _measured(outcome, confirmation, terms)
    saved = priced(measured.hours, terms.prices.gpu_hour_usd)
    if saved.high <= 0:
        return PaybackNever(pilot_usd=pilot_usd, why=_why_nothing(measured.hours, terms))
    if saved.low <= 0:
        return PaybackUnknown(
            pilot_usd=pilot_usd,
            why="the saving's interval includes zero, so no payback is shown",
            settled_by="a new trial with more confirmation processes, or a faster kernel",
        )
    people = min(people_usd(terms.prices, terms.workload), pilot_usd)
    pilot = Pilot(
        people_usd=people,
        machines_usd=pilot_usd - people,
        hours=measured.hours,
        freedom=measured.freedom,
        confidence=measured.confidence,
    )
    return _known(pilot_usd, measured, terms, forecast(pilot, terms, seed))


@dataclass(frozen=True)
class _Measured:
    """GPU hours saved a month, over how many calls or invocations, and how sure that is."""

    basis: Literal["end_to_end", "derived"]
    count: Decimal
    hours: Saving
    freedom: int
    confidence: float


def _measured(outcome: Confirmed, confirmation: Confirmation, terms: Agreed) -> _Measured:
    """From the application where it shows a saving and its invocations are known; else calls times latency.

    Where they are not known, but the application's calls were counted, and it saves less than these calls should, the
    invocations that the calls of a month make up take their place: a kernel's saving that the application does not
    have is no money.
    """
    ran, calls, looked = confirmation.end_to_end, terms.workload.calls_per_month, outcome.looked
    count, hours = Decimal(sum(calls.values())), confirmed_saving(calls, outcome)
    derived = _Measured("derived", count, hours, max(looked.processes - 1, 1), looked.nominal_confidence)
    if not (isinstance(ran, EndToEnd) and ran.saved_ms.low > 0):
        return derived
    if terms.workload.invocations_per_month:
        return _in_the_application(ran, Decimal(terms.workload.invocations_per_month))
    if not (isinstance(ran.seen, Seen) and count):
        return derived
    with exactly():
        seen = _in_the_application(ran, count / decimal(ran.seen.calls_per_invocation))
    return seen if seen.hours.high < hours.low else derived


def _in_the_application(ran: EndToEnd, invocations: Decimal) -> _Measured:
    with exactly():
        low, middle, high = (
            decimal(ms) * invocations / MS_PER_HOUR for ms in (ran.saved_ms.low, ran.saved_ms.middle, ran.saved_ms.high)
        )
    hours = Saving(low=low, middle=middle, high=high)
    return _Measured("end_to_end", invocations, hours, max(ran.processes - 1, 1), ran.saved_ms.confidence)


def _known(pilot_usd: Decimal, measured: _Measured, terms: Agreed, drawn: Forecast) -> Payback:
    saved = priced(measured.hours, terms.prices.gpu_hour_usd)
    horizon, count = terms.policy.horizon_months, measured.count
    with exactly():
        return Payback(
            basis=measured.basis,
            pilot_usd=pilot_usd,
            gpu_hours_per_month=rounded_saving(measured.hours),
            saved_usd_per_month=rounded_saving(saved),
            months_low=rounded(pilot_usd / saved.high),
            months_middle=rounded(pilot_usd / saved.middle),
            months_high=rounded(pilot_usd / saved.low),
            horizon_months=horizon,
            break_even_calls_per_month=ceiling(count * pilot_usd / (horizon * saved.middle)),
            break_even_ms_per_call=rounded(pilot_usd * MS_PER_HOUR / (horizon * terms.prices.gpu_hour_usd * count)),
            forecast=drawn,
        )


def _not_timed(pilot_usd: Decimal, has_winner: bool) -> PaybackUnknown:
    if has_winner:
        return PaybackUnknown(
            pilot_usd=pilot_usd,
            why="no latency of the winner was confirmed, so no saving is known",
            settled_by="run the trial on a machine with the GPU that production uses",
        )
    return PaybackUnknown(
        pilot_usd=pilot_usd,
        why="there is no winner, so there is nothing to save",
        settled_by="a candidate that is right on every public and every sealed case",
    )


def _why_nothing(hours: Saving, terms: Agreed) -> str:
    if not any(terms.workload.calls_per_month.values()):
        return "the workload has no calls"
    if hours.high > 0:
        return "a GPU hour costs nothing in these terms"
    return "the calls take as long as before, or longer"
