"""The prize: the most that any kernel could save."""

from decimal import Decimal

from kerneltrial.records.record import Record


class KnownPrize(Record, tag_field="state", tag="known"):
    """Upper bound on the monthly saving, and whether it could pay back the pilot's people within the horizon.

    `needed_usd_per_month` is the least monthly saving that pays back `people_usd` (set-up and review hours at their
    rate, the part of the pilot's cost that is known before it starts) within the policy's horizon. `floor` says what
    the bound takes for the fastest possible call.
    """

    gpu_hours_per_month: Decimal
    saved_usd_per_month: Decimal
    people_usd: Decimal
    needed_usd_per_month: Decimal
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
