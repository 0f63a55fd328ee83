"""The terms: what a saving must be worth. Fixed with the lock; a later change is an amendment."""

from decimal import Decimal
from typing import Annotated

import msgspec
from msgspec import Meta

from kerneltrial.records.record import Count, Name, Record, within

Day = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?!\n)$", description="a day, such as 2026-12-01")]


class Policy(Record):
    """Thresholds of the decision; ratios are speedups less one (0.02 is 2 percent), `horizon_months` bounds payback.

    `waive_vendor` names libraries that may be faster than the winner, `waive_floor` cases whose latency under the
    roofline's floor a person has looked into and found honest. `no_vendor` says that no vendor has a kernel for this
    contract, and why; nothing where one is to be timed. `accept_unseen` says that a person has looked at a winner that
    the `cpu` device could not run beside the card, or some way through which no case takes.
    """

    minimum_effect: Decimal = Decimal("0.02")
    worst_case_loss: Decimal = Decimal("0.01")
    horizon_months: Decimal = Decimal(12)
    waive_vendor: tuple[str, ...] = ()
    no_vendor: Annotated[str, Meta(max_length=500)] = ""
    waive_floor: tuple[Name, ...] = ()
    accept_derived: bool = False
    require_receipt: bool = True
    accept_unseen: bool | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        within("minimum_effect", self.minimum_effect, "0", "10")
        within("worst_case_loss", self.worst_case_loss, "0", "1")
        within("horizon_months", self.horizon_months, "0.01", "120")


class NoModelPrices(Record, tag_field="kind", tag="none"):
    """No model is asked, so no tokens are charged."""


class ModelPrices(Record, tag_field="kind", tag="tokens"):
    """US dollars for a million tokens; cached input has its own price, reasoning counts as output.

    `cache_write_extra_usd` is what input that the provider writes to its cache costs beyond `input_usd`.
    """

    input_usd: Decimal
    cached_input_usd: Decimal
    output_usd: Decimal
    source: str
    date: Day
    cache_write_extra_usd: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        within("input_usd", self.input_usd, "0", "1000000")
        within("cached_input_usd", self.cached_input_usd, "0", "1000000")
        within("output_usd", self.output_usd, "0", "1000000")
        within("cache_write_extra_usd", self.cache_write_extra_usd, "0", "1000000")


class NoAlternative(Record, tag_field="kind", tag="none"):
    """What a person would have cost who writes the kernel by hand was not asked for."""


class Alternative(Record, tag_field="kind", tag="quoted"):
    """What it would cost to have a person write the kernel by hand: an offer or an estimate, with its source."""

    usd: Decimal
    source: str
    date: Day

    def __post_init__(self) -> None:
        within("usd", self.usd, "0", "100000000")


class Prices(Record):
    """US dollars. `gpu_hour_usd` is one card for one hour; `source` and `date` say where and when a price was read.

    `provider`, `sku` and `region` say whose price of what it is.
    """

    gpu_hour_usd: Decimal
    engineer_hour_usd: Decimal
    source: str
    date: Day
    provider: str = ""
    sku: str = ""
    region: str = ""
    model: ModelPrices | NoModelPrices = NoModelPrices()
    alternative: Alternative | NoAlternative = NoAlternative()

    def __post_init__(self) -> None:
        within("gpu_hour_usd", self.gpu_hour_usd, "0", "1000000")
        within("engineer_hour_usd", self.engineer_hour_usd, "0", "1000000")


class Uncertainty(Record):
    """How far off a figure may be, as a share of it: 0.2 is from 20 percent less to 20 percent more."""

    calls: Decimal = Decimal("0.2")
    gpu_hour: Decimal = Decimal("0.1")
    hours: Decimal = Decimal("0.3")

    def __post_init__(self) -> None:
        for name in ("calls", "gpu_hour", "hours"):
            within(name, getattr(self, name), "0", "0.9")


class Workload(Record):
    """How often production calls the kernel, by performance case; and the hours that people spend on the pilot.

    `invocations_per_month` is how often production runs what end-to-end evidence runs once; 0 where that is not known.
    `upkeep_hours_per_month` is what the new kernel costs people afterwards; payback is gross, this is shown beside it.

    `example: true` marks workload and prices that are not the user's own; they can never lead to GO. Nor can prices
    whose source says that they are an example, or says nothing (`why_example`).
    """

    calls_per_month: dict[Name, Count]
    setup_hours: Decimal
    review_hours: Decimal
    example: bool
    invocations_per_month: Count = 0
    upkeep_hours_per_month: Decimal = Decimal(0)
    uncertainty: Uncertainty = Uncertainty()

    def __post_init__(self) -> None:
        within("setup_hours", self.setup_hours, "0", "1000000")
        within("review_hours", self.review_hours, "0", "1000000")
        within("upkeep_hours_per_month", self.upkeep_hours_per_month, "0", "10000")


def why_example(prices: Prices, workload: Workload) -> str:
    """Why these are not the user's own figures, in words; nothing where they are.

    Setting `workload.example` to false does not make a price one's own: its source has to be named too.
    """
    if workload.example:
        return "workload.example is true"
    sources = {"prices.source": prices.source}
    if isinstance(prices.model, ModelPrices):
        sources["prices.model.source"] = prices.model.source
    for key, source in sources.items():
        if not source.strip():
            return f"{key} is empty"
        if "example" in source.casefold():
            return f"{key} is '{source.strip()}'"
    return ""


class Agreed(Record):
    """One version of the terms."""

    iterations: Annotated[int, Meta(ge=1, le=1000)]
    policy: Policy
    prices: Prices
    workload: Workload

    @property
    def why_example(self) -> str:
        """Why these are not the user's own figures; nothing where they are."""
        return why_example(self.prices, self.workload)


class Terms(Record):
    """The first version, the one in force, and all amendments in order; more than none is shown as post hoc."""

    first: Agreed
    now: Agreed
    amendments: tuple[Agreed, ...]

    @property
    def example(self) -> bool:
        """The terms in force are not the user's own."""
        return bool(self.now.why_example)

    @property
    def post_hoc(self) -> bool:
        """The terms were changed after the lock."""
        return bool(self.amendments)
