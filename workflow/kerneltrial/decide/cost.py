"""What the trial has cost, and the provisional payback from the best candidate so far."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from kerneltrial.decide.amounts import S_PER_HOUR, exactly, rounded
from kerneltrial.decide.saving import SpeedupOfCase, priced, saved_hours
from kerneltrial.decide.winner import Judged, choose_winner
from kerneltrial.records.confirmation import NoWinner
from kerneltrial.records.cost import Cost, KnownPayback, NoPayback, Spent
from kerneltrial.records.proposal import ModelUsage
from kerneltrial.records.terms import ModelPrices, NoModelPrices, Prices, Workload, why_example
from kerneltrial.records.timing import Timed
from kerneltrial.records.usage import Usage

_PER_MILLION = Decimal("1E-6")


def people_usd(prices: Prices, workload: Workload) -> Decimal:
    """Set-up and review hours at the engineer's rate."""
    with exactly():
        return (workload.setup_hours + workload.review_hours) * prices.engineer_hour_usd


def model_usd(used: ModelUsage, prices: ModelPrices | NoModelPrices) -> Decimal:
    """The model's charge. Cached tokens are part of the input's, reasoning tokens of the output's.

    Raises
    ------
    ValueError
        Tokens were used and the terms have no price for them: a total without them would be too low.
    """
    if isinstance(prices, NoModelPrices):
        if used.input_tokens or used.output_tokens:
            raise ValueError(
                f"the proposer used {used.input_tokens} input and {used.output_tokens} output tokens, and prices.model "
                "has no price for them; set it in the config"
            )
        return Decimal(0)
    fresh = used.input_tokens - used.cached_tokens
    if fresh < 0:
        raise ValueError(f"{used.cached_tokens} cached of {used.input_tokens} input tokens cannot be")
    with exactly():
        charged = fresh * prices.input_usd + used.cached_tokens * prices.cached_input_usd
        charged += used.cache_write_tokens * prices.cache_write_extra_usd
        return (charged + used.output_tokens * prices.output_usd) * _PER_MILLION


def spent(models: Iterable[ModelUsage], usages: Iterable[Usage], prices: Prices, workload: Workload) -> Spent:
    """Sums over model usage and usage entries, and the people's hours.

    Which entries belong is the caller's to say: for the cost of iteration i those of qualification and of iterations
    up to i, for the decision those of the confirmation too.
    """
    models, usages = list(models), list(usages)
    with exactly():
        charges = sum((model_usd(used, prices.model) for used in models), start=Decimal(0))
        device_s = sum((usage.device_s for usage in usages), start=Decimal(0))
        device = device_s / S_PER_HOUR * prices.gpu_hour_usd
        people = people_usd(prices, workload)
        return Spent(
            input_tokens=sum(used.input_tokens for used in models),
            output_tokens=sum(used.output_tokens for used in models),
            device_s=device_s,
            cpu_s=sum((usage.cpu_s for usage in usages), start=Decimal(0)),
            model_usd=rounded(charges),
            device_usd=rounded(device),
            people_usd=rounded(people),
            total_usd=rounded(charges + device + people),
        )


def cost(iteration: int, so_far: Spent, judged: Sequence[Judged], prices: Prices, workload: Workload) -> Cost:
    """The cost of iterations up to this one; `judged` holds the same iterations, oldest first."""
    return Cost(
        iteration=iteration,
        spent=so_far,
        payback=_provisional(so_far, judged, prices, workload),
        example=bool(why_example(prices, workload)),
    )


def _provisional(
    so_far: Spent, judged: Sequence[Judged], prices: Prices, workload: Workload
) -> KnownPayback | NoPayback:
    best = choose_winner(judged)
    if isinstance(best, NoWinner):
        return NoPayback(why=best.why)
    if best.measure == "counts":
        return NoPayback(why="counts are not time: this device has no clock, so no saving is known")
    speedups = _speedups(judged, best.candidate)
    with exactly():
        saved = priced(saved_hours(workload.calls_per_month, speedups), prices.gpu_hour_usd).middle
        if saved <= 0:
            return NoPayback(why="the best candidate so far saves nothing at these calls and prices")
        return KnownPayback(
            best=best.candidate,
            saved_usd_per_month=rounded(saved),
            payback_months=rounded(so_far.total_usd / saved),
        )


def _speedups(judged: Sequence[Judged], candidate: str) -> list[SpeedupOfCase]:
    timings = (timing for iteration in judged for timing in iteration.timing.candidates)
    timed = next(timing for timing in timings if isinstance(timing, Timed) and timing.candidate == candidate)
    return [(case.case, case.baseline_warm_us, case.speedup) for case in timed.cases]
