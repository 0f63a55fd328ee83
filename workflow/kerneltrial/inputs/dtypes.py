"""Element types of contracts: their NumPy form, size, precision; bfloat16 travels as its uint16 bit pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kerneltrial.records.plan import DType

if TYPE_CHECKING:  # numpy is imported where arrays are: what only asks for sizes starts in half the time without it
    import numpy as np
    from numpy.typing import NDArray

_EXPONENTS = {"float16": -10, "bfloat16": -7, "float32": -23, "float64": -52}
_LEAST_NORMAL = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}
_BYTES: dict[DType, int] = {
    "float64": 8, "int64": 8, "uint64": 8, "float32": 4, "int32": 4, "uint32": 4, "float16": 2, "bfloat16": 2,
    "int16": 2, "uint16": 2, "int8": 1, "uint8": 1,
}  # fmt: skip
_LOWER: dict[str, DType] = {"float64": "float32", "float32": "float16", "float16": "bfloat16"}


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the NumPy type that holds `dtype`'s bytes, little-endian; uint16 for bfloat16, which NumPy lacks."""
    import numpy as np

    return np.dtype("uint16" if dtype == "bfloat16" else dtype).newbyteorder("<")


def item_bytes(dtype: DType) -> int:
    """Return the size of one element in bytes."""
    return _BYTES[dtype]


def is_float(dtype: DType) -> bool:
    """Tell floats, bfloat16 included, from integers."""
    return dtype in _EXPONENTS


def epsilon(dtype: DType) -> float:
    """Return the distance from 1 to the next float of this type; 0 for integers."""
    return 2.0 ** _EXPONENTS[dtype] if dtype in _EXPONENTS else 0.0


def smallest(dtype: DType) -> float:
    """Return the least positive float of this type, a subnormal; 0 for integers."""
    return 2.0 ** (_LEAST_NORMAL[dtype] + _EXPONENTS[dtype]) if dtype in _EXPONENTS else 0.0


def next_lower(dtype: DType) -> DType | None:
    """Return the float type that is less precise than `dtype`, or None where there is none."""
    return _LOWER.get(dtype)


def widen(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Return an array's values: float64 for floats, int64 or uint64 for integers. Exact for every type."""
    import numpy as np

    if dtype == "bfloat16":
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if is_float(dtype):
        return array.astype(np.float64)
    return array.astype(np.uint64 if dtype.startswith("u") else np.int64)


def narrow(values: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Round values to the nearest of `dtype` (ties to even) and return them in their NumPy form.

    To bfloat16 it is rounded through float32, as hardware conversions from float32 do.
    """
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if dtype != "bfloat16":
            return values.astype(numpy_dtype(dtype))
        bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return np.where(np.isnan(values), np.uint64(0x7FC0), rounded).astype(np.uint16)


def to_bytes(array: NDArray[Any], dtype: DType) -> bytes:
    """Return row-major little-endian bytes of an array in its NumPy form; raises ValueError on another dtype."""
    import numpy as np

    if array.dtype != numpy_dtype(dtype):
        raise ValueError(f"array is {array.dtype}, {dtype} needs {numpy_dtype(dtype)}")
    return np.ascontiguousarray(array, dtype=numpy_dtype(dtype)).tobytes()


def from_bytes(content: bytes, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the array of `to_bytes`; raises ValueError where the size does not fit the shape."""
    import numpy as np

    return np.frombuffer(content, dtype=numpy_dtype(dtype)).reshape(shape)
