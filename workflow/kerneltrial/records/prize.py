"""The prize: the most that any kernel could save."""

from decimal import Decimal
from typing import Literal

from kerneltrial.records.record import Record


class KnownPrize(Record, tag_field="state", tag="known"):
    """Upper bound on the monthly saving in US dollars, and whether it could pay back the pilot's people within the horizon.

    `floor` says what the bound assumes as the fastest possible call.
    """

    monthly_usd: Decimal
    pilot_floor_usd: Decimal
    best_payback_months: Decimal | None
    can_pay_back: bool
    floor: str


class UnknownPrize(Record, tag_field="state", tag="unknown"):
    """Not known here, and what would settle it."""

    why: str
    settled_by: str


class Prize(Record):
    """Known before the first proposal. `example` says that the terms behind it are not the user's own."""

    prize: KnownPrize | UnknownPrize
    example: bool
    unit: Literal["usd_per_month"] = "usd_per_month"
