"""Numbers as dtypes hold them: exact values of bytes, rounding to a precision, distances in units in the last place.

Values are exact: float16, bfloat16 and float32 are held in float64 without loss, integers in (u)int64.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kerneltrial.inputs.dtypes import epsilon, from_bytes, is_float, item_bytes, narrow, widen
from kerneltrial.records.plan import DType

Floats = NDArray[np.float64]

TF32_BITS: Final = 11  # 10 stored significand bits and the leading one
# Significand bits of the next lower precision, the leading one included: float32, then TF32 and half (both 11), then
# bfloat16, then the 8-bit formats (e4m3).
_LOWER_BITS: Final[dict[str, int]] = {"float64": 24, "float32": 11, "float16": 8, "bfloat16": 4}


def decode(data: bytes, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    """Exact values of row-major `data`; raises ValueError where its size is not that of the shape."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        return widen(from_bytes(data, dtype, shape), dtype)


def rounded(values: Floats, dtype: DType) -> Floats:
    """`values` as a floating `dtype` holds them: rounded to nearest even, beyond its range infinite."""
    return np.asarray(widen(narrow(values, dtype), dtype), np.float64)


def to_significand(values: Floats, bits: int) -> Floats:
    """`values` rounded to nearest even with `bits` significand bits and an unlimited exponent."""
    fraction, exponent = np.frexp(values)
    near = np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits)
    return np.asarray(np.where(np.isfinite(values), near, values), np.float64)


def lower_precision(values: Floats, dtype: DType) -> Floats:
    """`values` with the significand of the precision below `dtype`, in `dtype`'s range."""
    return rounded(to_significand(values, _LOWER_BITS[dtype]), dtype)


def ulps_apart(got: float, want: float, dtype: DType) -> int | None:
    """How many numbers of `dtype` lie from `want` (rounded to it) to `got`; None where that has no meaning."""
    pair = np.array([got, want], np.float64)
    if not is_float(dtype) or np.isnan(pair).any():
        return None
    stored = narrow(pair, dtype)
    bits = stored.view(np.dtype(f"i{item_bytes(dtype)}"))
    # A negative number's bit pattern counts away from zero: mirrored, patterns are in the order of the numbers.
    low = -int(2 ** (8 * item_bytes(dtype) - 1))
    ordered: list[int] = [int(b) if b >= 0 else low - int(b) for b in bits]
    return abs(ordered[0] - ordered[1])


__all__ = [
    "TF32_BITS",
    "Floats",
    "decode",
    "epsilon",
    "is_float",
    "item_bytes",
    "lower_precision",
    "rounded",
    "to_significand",
    "ulps_apart",
]
