"""One canonical JSON form, so that equal values have equal bytes and equal digests everywhere."""

import hashlib
import json
from decimal import Decimal
from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")
MOST_DIGITS: Final = 4000  # as long as Python's own integers may be when they are written out


def decimal_text(value: Decimal) -> str:
    """The one normal form of a decimal: no exponent, no trailing zeros, no minus before zero.

    >>> decimal_text(Decimal("1.50")), decimal_text(Decimal("-0.0")), decimal_text(Decimal("1E+2"))
    ('1.5', '0', '100')
    """
    if not value.is_finite() or not -MOST_DIGITS < value.adjusted() < MOST_DIGITS:  # 1e999999999 is a gigabyte of zeros
        raise ValueError(f"{value} has no canonical form")
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def builtins(value: object) -> Any:
    """The value as JSON types: records to mappings, decimals to strings in normal form."""
    return _plain(msgspec.to_builtins(value, builtin_types=(Decimal,)))


def _plain(value: Any) -> Any:
    """What msgspec leaves is of these very types: no other is asked about, as whole trials come through here."""
    kind = type(value)
    if kind is dict:
        return {key: _plain(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [_plain(item) for item in value]
    return decimal_text(value) if kind is Decimal else value


def canonical(value: object) -> bytes:
    """UTF-8 JSON with sorted keys, no spaces, shortest round-trip floats, no NaN, and one newline at the end."""
    return written(builtins(value))


def written(plain: Any) -> bytes:
    """As `canonical`, of what `builtins` gave."""
    text = json.dumps(plain, sort_keys=True, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.encode() + b"\n"


def digest(data: bytes) -> str:
    """SHA-256 in lower-case hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def decode(type_: type[T], data: bytes) -> T:
    """The value of strict JSON `data`; raise msgspec.ValidationError or DecodeError with the field that is wrong."""
    return msgspec.json.decode(data, type=type_)


def convert(type_: type[T], value: object) -> T:
    """The value of JSON types that were read already."""
    return msgspec.convert(value, type_)
