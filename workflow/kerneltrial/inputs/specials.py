"""NaN, infinities, subnormals, huge numbers and negative zeros among the values of a draw, as the contract allows them.

They come in draws of `Distribution.TIES`, few and far between, so that most of an output keeps a plain answer. A kernel
that drops a NaN, that flushes what the contract keeps, or that reckons in a type of a narrower range shows there. Of
zeros, which answer plainly, half are negative where -0 is among the kinds.

Beside them whole lines are of one kind, where an output has an element or a line of its own for each line of the input
(the rows of a softmax): a row that is masked throughout, a sum of nothing but subnormals. Few lines, for the same
reason.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kerneltrial.inputs.dtypes import is_float
from kerneltrial.records.contract import Array, Contract, Special
from kerneltrial.records.plan import DType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SPACING: Final = 4096  # about one value of each kind for as many elements
MOST: Final = 16  # of each kind in an array
LINES_FOR_ONE: Final = 8  # an array with fewer lines has none of one kind alone: the others would drown
OUTPUTS_FOR_ALL: Final = 16  # with fewer output elements for each kind, a draw has one kind: the others would drown

# Exponents: of the least normal number, and of what lies just above the largest.
_RANGES: Final[dict[str, tuple[int, int]]] = {
    "float64": (-1022, 1024),
    "float32": (-126, 128),
    "float16": (-14, 16),
    "bfloat16": (-126, 128),
}


def kinds_of(array: Array, contract: Contract) -> tuple[Special, ...]:
    """The kinds that an input may have: those that it names, and -0 where it may be zero and a zero's sign counts."""
    signed = any(tolerance.signed_zero for tolerance in contract.tolerances.values())
    if array.role == "output" or not is_float(array.dtype) or not (signed and admits_zero(array)):
        return array.specials
    return tuple(dict.fromkeys((*array.specials, "-0")))


def admits_zero(array: Array) -> bool:
    """Whether zero lies within the array's bounds."""
    return (array.low is None or array.low <= 0) and (array.high is None or array.high >= 0)


def kinds_in(allowed: Sequence[Special], outputs: int, rng: "np.random.Generator") -> tuple[Special, ...]:
    """The kinds that one draw has: all, or one of them where the call has too few output elements to tell them apart.

    `rng` must be the same for all arrays of the call, so that all show the same kind.
    """
    if not allowed or outputs >= OUTPUTS_FOR_ALL * len(allowed):
        return tuple(allowed)
    return (allowed[int(rng.integers(len(allowed)))],)


def own_axis(array: Array, contract: Contract) -> int | None:
    """The first axis of an input, of two or more, whose places each output has for itself: what one line is spoils no
    other line's answer. None where there is no such axis."""
    if len(array.shape) < 2:
        return None
    return next((i for i, size in enumerate(array.shape) if all(size in o.shape for o in contract.outputs)), None)


def put_among(
    values: "NDArray[Any]", kinds: Sequence[Special], dtype: DType, rng: "np.random.Generator", axis: int | None = None
) -> "NDArray[np.float64]":
    """Return a copy of float64 `values` (not yet rounded to `dtype`) with some places taken by `kinds`.

    `axis`: the one along which some lines are of one kind throughout: of each kind one, or one of one kind where there
    are not many lines.
    """
    import numpy as np  # a contract is read by stages that draw nothing

    changed = np.array(values, np.float64)
    flat = changed.reshape(-1)
    count = min(max(flat.size // SPACING, 1), MOST)
    for kind in kinds:
        places = rng.integers(0, flat.size, count)
        flat[places] = [_special(kind, dtype, rng) for _ in range(count)]
        if kind == "-0":
            flat[(flat == 0) & (rng.random(flat.size) < 0.5)] = -0.0
    if axis is not None and values.shape[axis] >= LINES_FOR_ONE and kinds:
        many = values.shape[axis] >= OUTPUTS_FOR_ALL * len(kinds)
        chosen = kinds if many else (kinds[int(rng.integers(len(kinds)))],)
        lines = np.moveaxis(changed, axis, 0)
        for kind, line in zip(chosen, rng.permutation(len(lines)), strict=False):
            lines[line] = _special(kind, dtype, rng)
    return changed


def _special(kind: Special, dtype: DType, rng: "np.random.Generator") -> float:
    least, above = _RANGES[dtype]
    sign = float(rng.choice((-1.0, 1.0)))
    match kind:
        case "nan":
            return math.nan
        case "inf":
            return math.inf
        case "-inf":
            return -math.inf
        case "subnormal":
            return sign * math.ldexp(1.0, least - int(rng.integers(1, 5)))
        case "huge":
            return sign * math.ldexp(float(rng.integers(4, 8)) / 8, above)
        case "-0":
            return -0.0
