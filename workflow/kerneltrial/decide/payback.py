"""When the confirmed saving has paid for the pilot."""

from decimal import Decimal

from kerneltrial.decide.amounts import MS_PER_HOUR, ceiling, exactly, rounded
from kerneltrial.decide.cost import people_usd
from kerneltrial.decide.forecast import Pilot, forecast
from kerneltrial.decide.saving import confirmed_saving, priced, rounded_saving
from kerneltrial.records.confirmation import Confirmation, Confirmed, NotTimed
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
    hours = confirmed_saving(terms.workload.calls_per_month, outcome)
    saved = priced(hours, terms.prices.gpu_hour_usd)
    if saved.high <= 0:
        return PaybackNever(pilot_usd=pilot_usd, why=_why_nothing(hours, terms))
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
        hours=hours,
        freedom=max(outcome.looked.processes - 1, 1),
        confidence=outcome.looked.nominal_confidence,
    )
    return _known(pilot_usd, hours, terms, forecast(pilot, terms, seed))


def _known(pilot_usd: Decimal, hours: Saving, terms: Agreed, drawn: Forecast) -> Payback:
    saved = priced(hours, terms.prices.gpu_hour_usd)
    horizon = terms.policy.horizon_months
    calls = sum(terms.workload.calls_per_month.values())
    with exactly():
        return Payback(
            pilot_usd=pilot_usd,
            gpu_hours_per_month=rounded_saving(hours),
            saved_usd_per_month=rounded_saving(saved),
            months_low=rounded(pilot_usd / saved.high),
            months_middle=rounded(pilot_usd / saved.middle),
            months_high=rounded(pilot_usd / saved.low),
            horizon_months=horizon,
            break_even_calls_per_month=ceiling(calls * pilot_usd / (horizon * saved.middle)),
            break_even_ms_per_call=rounded(pilot_usd * MS_PER_HOUR / (horizon * terms.prices.gpu_hour_usd * calls)),
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
