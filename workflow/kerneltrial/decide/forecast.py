"""Payback by Monte Carlo: the saving's t interval, and calls, price and hours within what the terms say of them.

Each input is drawn by Latin hypercube: of N equal shares of its distribution each is taken once, in random order
(McKay, Beckman and Conover, Technometrics 21, 1979). So its own distribution is exact, and 5,000 leave little noise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import ceil, sqrt
from random import Random
from statistics import NormalDist

from kerneltrial.decide.amounts import decimal
from kerneltrial.measure.quantile import student_t
from kerneltrial.records.decision import Saving
from kerneltrial.records.forecast import Forecast, Swing, Upkeep
from kerneltrial.records.terms import Agreed

DRAWS = 5_000
_LONGEST = 1200.0  # months: a hundred years stands for never
_UPKEEP = (Decimal("0.5"), Decimal(1), Decimal(2), Decimal(4))
_STEP, _REACH = 0.02, 4.5
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Pilot:
    """What the forecast is of: dollars spent on people and on machines, GPU hours saved a month with their t interval.

    `freedom` are the interval's degrees of freedom, `confidence` its nominal one.
    """

    people_usd: Decimal
    machines_usd: Decimal
    hours: Saving
    freedom: int
    confidence: float


@dataclass(frozen=True)
class _Model:
    """Payback in months as a function of the four inputs, each given as a share of its distribution (0 to 1)."""

    people_usd: float
    machines_usd: float
    middle_h: float
    scale_h: float
    freedom: int
    gpu_hour_usd: float
    spreads: tuple[float, float, float]

    def months(self, saving: float, calls: float, price: float, hours: float, upkeep_usd: float = 0.0) -> float:
        of_calls, of_price, of_hours = self.spreads
        cost = self.machines_usd + self.people_usd * triangle(hours, of_hours)
        saved = (self.middle_h + self.scale_h * t_share(saving, self.freedom)) * triangle(calls, of_calls)
        left = saved * self.gpu_hour_usd * triangle(price, of_price) - upkeep_usd
        return min(cost / left, _LONGEST) if left > 0 else _LONGEST


def _model(pilot: Pilot, terms: Agreed) -> _Model:
    """The saving is Student's t around the middle, as wide as the interval says."""
    spread = terms.workload.uncertainty
    half = float(pilot.hours.high - pilot.hours.low) / 2
    return _Model(
        people_usd=float(pilot.people_usd),
        machines_usd=float(pilot.machines_usd),
        middle_h=float(pilot.hours.middle),
        scale_h=half / student_t((1 + pilot.confidence) / 2, pilot.freedom),
        freedom=pilot.freedom,
        gpu_hour_usd=float(terms.prices.gpu_hour_usd),
        spreads=(float(spread.calls), float(spread.gpu_hour), float(spread.hours)),
    )


_INPUTS = ("saving", "calls", "price", "hours")


def forecast(pilot: Pilot, terms: Agreed, seed: int, draws: int = DRAWS) -> Forecast:
    """The forecast; equal arguments give the equal forecast, on any machine."""
    model = _model(pilot, terms)
    months = sorted(model.months(*inputs) for inputs in zip(*latin_hypercube(len(_INPUTS), draws, seed), strict=True))
    horizon = float(terms.policy.horizon_months)
    return Forecast(
        draws=draws,
        seed=seed,
        p5=_rounded(_percentile(months, 0.05)),
        p50=_rounded(_percentile(months, 0.50)),
        p95=_rounded(_percentile(months, 0.95)),
        within_horizon=_share(months, lambda value: value <= horizon),
        never=_share(months, lambda value: value >= _LONGEST),
        swings=_swings(model),
        upkeep=_upkeep(model, terms),
    )


def latin_hypercube(inputs: int, draws: int, seed: int) -> list[list[float]]:
    """For each input the middles of `draws` equal shares of 0 to 1, in an order of its own.

    Only `Random.random` is used: Python promises that it gives the same numbers for a seed in every version.
    """
    random = Random(seed)
    found = []
    for _ in range(inputs):
        keys = [random.random() for _ in range(draws)]
        found.append([(place + 0.5) / draws for place in sorted(range(draws), key=keys.__getitem__)])
    return found


def triangle(share: float, spread: float) -> float:
    """The value below which `share` of the triangular distribution on 1 - spread to 1 + spread lies, its mode at 1.

    >>> triangle(0.5, 0.2), triangle(0.0, 0.2), round(triangle(0.875, 0.2), 12)
    (1.0, 0.8, 1.1)
    """
    if share < 0.5:
        return 1 - spread + spread * sqrt(2 * share)
    return 1 + spread - spread * sqrt(2 * (1 - share))


def t_share(share: float, freedom: int) -> float:
    """The value below which `share` of Student's t lies, from a table over the normal's own: good to about 1e-4."""
    if share < 0.5:
        return -t_share(1 - share, freedom)
    place = min(_NORMAL.inv_cdf(share), _REACH) / _STEP
    table = _table(freedom)
    left = min(int(place), len(table) - 2)
    return table[left] + (table[left + 1] - table[left]) * (place - left)


@lru_cache(maxsize=16)
def _table(freedom: int) -> tuple[float, ...]:
    return tuple(student_t(_NORMAL.cdf(number * _STEP), freedom) for number in range(round(_REACH / _STEP) + 1))


def _swings(model: _Model) -> tuple[Swing, ...]:
    found = []
    for name in _INPUTS:
        shares = ([share if other == name else 0.5 for other in _INPUTS] for share in (0.05, 0.95))
        ends = sorted(model.months(*one) for one in shares)
        found.append(Swing(name=name, months_low=_rounded(ends[0]), months_high=_rounded(ends[1])))
    return tuple(sorted(found, key=lambda swing: (swing.months_low - swing.months_high, swing.name)))


def _upkeep(model: _Model, terms: Agreed) -> tuple[Upkeep, ...]:
    asked = {*_UPKEEP, terms.workload.upkeep_hours_per_month} - {Decimal(0)}
    found = []
    for hours in sorted(asked):
        months = model.months(0.5, 0.5, 0.5, 0.5, float(hours * terms.prices.engineer_hour_usd))
        found.append(Upkeep(hours_per_month=hours, months=_rounded(months), pays=months < _LONGEST))
    return tuple(found)


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[ceil(share * len(ordered)) - 1]


def _share(values: Sequence[float], holds: Callable[[float], bool]) -> Decimal:
    return decimal(round(sum(map(holds, values)) / len(values), 4))


def _rounded(months: float) -> Decimal:
    """To a thousandth of a month, under an hour: coarse enough to be the same on every machine."""
    return decimal(round(months, 3))
