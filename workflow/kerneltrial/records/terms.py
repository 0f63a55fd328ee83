"""The terms: what a saving must be worth. Fixed with the lock; a later change is an amendment."""

from decimal import Decimal
from typing import Annotated

from msgspec import Meta

from kerneltrial.records.record import Name, Record

Money = Annotated[Decimal, Meta(ge=Decimal(0))]


class Policy(Record):
    """Thresholds of the decision; ratios are speedups less one (0.02 is 2 percent), `horizon_months` bounds payback."""

    minimum_effect: Annotated[Decimal, Meta(ge=Decimal(0), le=Decimal(10))] = Decimal("0.02")
    worst_case_loss: Annotated[Decimal, Meta(ge=Decimal(0), le=Decimal(1))] = Decimal("0.01")
    horizon_months: Annotated[Decimal, Meta(gt=Decimal(0), le=Decimal(120))] = Decimal(12)
    waive_vendor: tuple[str, ...] = ()
    accept_derived: bool = False
    require_receipt: bool = True


class Prices(Record):
    """US dollars. `gpu_hour_usd` is one card for one hour; `source` and `date` say where the price was read and when."""

    gpu_hour_usd: Money
    engineer_hour_usd: Money
    source: str
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Workload(Record):
    """How often production calls the kernel, by performance case; and the hours that people spend on the pilot.

    `example: true` marks figures that are not the user's own; they can never lead to GO.
    """

    calls_per_month: dict[Name, Annotated[int, Meta(ge=0)]]
    setup_hours: Annotated[Decimal, Meta(ge=Decimal(0))]
    review_hours: Annotated[Decimal, Meta(ge=Decimal(0))]
    example: bool


class Agreed(Record):
    """One version of the terms."""

    iterations: Annotated[int, Meta(ge=1, le=1000)]
    policy: Policy
    prices: Prices
    workload: Workload


class Terms(Record):
    """The first version, the one in force, and all amendments in order; more than none is shown as post hoc."""

    first: Agreed
    now: Agreed
    amendments: tuple[Agreed, ...]
