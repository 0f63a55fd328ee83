"""What every record shares: frozen, strict, no unknown fields; and the small types that fields are made of."""

from decimal import Decimal
from typing import Annotated, dataclass_transform

import msgspec
from msgspec import Meta


@dataclass_transform(frozen_default=True, kw_only_default=True)  # subclasses inherit both; type checkers are told
class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value that is written once and never changed; equal content means equal bytes in canonical form."""


# `(?!\n)`: in Python `$` alone also matches before a newline at the end.
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}(?!\n)$", description="SHA-256 in lower-case hexadecimal")]
Name = Annotated[
    str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}(?!\n)$", description="letter, then letters, digits, _")
]
Expression = Annotated[str, Meta(min_length=1, max_length=200, description="integer expression in the dimensions")]
LARGEST = 2**63 - 1  # what 64 bits hold: a longer number would pass for one until something packs it, or makes a float
Count = Annotated[int, Meta(ge=0, le=LARGEST)]
Positive = Annotated[int, Meta(ge=1, le=LARGEST)]
Text = Annotated[str, Meta(max_length=20_000)]


class Interval(Record):
    """A two-sided interval around an estimate.

    Fields are in the unit of the quantity that carries the interval; `confidence` is a fraction, such as 0.95.
    """

    low: float
    middle: float
    high: float
    confidence: float


_LEAST = Decimal("1e-12")


def within(field: str, value: Decimal, low: str, high: str) -> None:
    """Raise ValueError unless `value` is a number from `low` to `high`, both included, and 0 or no less than 1e-12.

    What is smaller is no price and no share, and a payback over it has more digits than money is reckoned with.
    """
    if not (value.is_finite() and Decimal(low) <= value <= Decimal(high)):
        raise ValueError(f"{field}={value} must be from {low} to {high}")
    if 0 < abs(value) < _LEAST:
        raise ValueError(f"{field}={value} must be 0, or no less than {_LEAST}")
