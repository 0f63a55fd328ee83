"""Decimals that cannot be written out, or made integers, in reasonable time and room: `1e999999999` is a gigabyte."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import msgspec

Place = tuple[str | int, ...]
_DIGITS: Final = 1000  # the exact decimal form of a float64 has up to 767
_EXPONENT: Final = 400  # float64 goes from 4.9e-324 to 1.8e308
ALLOWED: Final = f"allowed: numbers from 1e-{_EXPONENT} to 1e{_EXPONENT} of at most {_DIGITS} digits"


def extremes(value: Any, place: Place = ()) -> Iterator[tuple[Place, Decimal]]:
    """Find them in a record, with their places, before anything is computed with them.

    What is not finite is left to those who know what it is for.
    """
    match value:
        case Decimal():
            if value.is_finite() and (abs(value.adjusted()) > _EXPONENT or len(value.as_tuple().digits) > _DIGITS):
                yield place, value
        case msgspec.Struct():
            for name in value.__struct_fields__:
                yield from extremes(getattr(value, name), (*place, name))
        case dict():
            for key, item in value.items():
                yield from extremes(item, (*place, str(key)))
        case list() | tuple():
            for index, item in enumerate(value):
                yield from extremes(item, (*place, index))
