"""Arrays that are too large to be drawn whole: their values repeat."""

from typing import Final

LARGE_ELEMENTS: Final = 2**28
PERIOD: Final = 16_777_213
"""A prime: no row, tile or power of two of elements holds the same values as its neighbour."""
