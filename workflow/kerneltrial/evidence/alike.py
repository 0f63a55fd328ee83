"""JSON types that say the same: floats to within the last places, which differ between machines."""

from typing import Any

_CLOSE = 1e-9  # relative: the same arithmetic on another machine


def same(told: Any, found: Any) -> bool:
    """Equal JSON types, floats close to each other."""
    if isinstance(told, dict) and isinstance(found, dict):
        return told.keys() == found.keys() and all(same(told[key], found[key]) for key in told)
    if isinstance(told, list) and isinstance(found, list):
        return len(told) == len(found) and all(map(same, told, found))
    numbers = isinstance(told, int | float) and isinstance(found, int | float)
    if numbers and (isinstance(told, float) or isinstance(found, float)):
        return close(told, found)
    return bool(told == found)


def close(told: float, found: float) -> bool:
    """Whether two numbers are the same but for rounding."""
    return abs(told - found) <= _CLOSE * max(abs(told), abs(found))
