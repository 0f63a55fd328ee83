"""A forecast of the payback by Monte Carlo: what is not known exactly is drawn many times."""

from decimal import Decimal

from kerneltrial.records.record import Count, Positive, Record


class Swing(Record):
    """Payback in months when one input alone is at its 5th and its 95th percentile, all others in the middle."""

    name: str
    months_low: Decimal
    months_high: Decimal


class Upkeep(Record):
    """Payback in months net of so many hours of people's upkeep a month; `pays` is false where nothing is left."""

    hours_per_month: Decimal
    months: Decimal
    pays: bool


class Forecast(Record):
    """Months until the pilot has paid: percentiles over `draws`, and the share of draws within the horizon.

    `never` is the share of draws in which nothing is saved; a percentile that falls there is as long as the forecast
    looks ahead. `swings` are the bars of a tornado plot, the longest first.
    """

    draws: Positive
    seed: Count
    p5: Decimal
    p50: Decimal
    p95: Decimal
    within_horizon: Decimal
    never: Decimal
    swings: tuple[Swing, ...]
    upkeep: tuple[Upkeep, ...]
