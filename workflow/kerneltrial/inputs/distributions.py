"""How numbers are drawn: one function for floats, one for integers.

Integers without bounds in the contract come in small values, and in `Distribution.WIDE` from the whole range of their
type: a kernel must hold for every value that its contract allows. So bound what is no free number (an index, a count, a
summand whose sum must fit) by `low` and `high` in the contract.

The rule of `Distribution.INTEGERS` (defeats arithmetic in a narrower type): values are integers that the contract's
type holds exactly and the next narrower types do not. One float input of the call, the *sharp* one, chosen by case and
draw, holds odd integers of the full width of the table below at a quarter of its places, and -1, 0 or 1 elsewhere; all
other float inputs hold -1, 0 or 1. So a sum over up to `length` products of one value of each input stays, in every
order and in absolute value, below 2**significand: each partial sum is exact in the contract's type, and a rounded
operand shows as a whole unit. For float32 the odd integers lie above 2**11 and below 2**12: half and TF32 (11 bits)
cannot hold them, and sums stay below 2**24, for certain up to a length of 4096. Where sums are longer there are fewer
odd integers, such that the expected sum of absolute values stays below half of the limit; for float32 and float64 a
sum beyond the limit is then practically impossible, for narrower types (which are summed in float32) it may occur.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrial.records.case import Distribution
from kerneltrial.records.plan import DType

# Width in bits of the odd integers, and of the type's significand. float16: wider than bfloat16 holds; bfloat16: wider
# than an 8-bit float holds; float64: wider than float32 holds.
INTEGER_BITS: dict[str, tuple[int, int]] = {
    "float64": (25, 53),
    "float32": (12, 24),
    "float16": (9, 11),
    "bfloat16": (6, 8),
}
# Mean of OFFSET, and the range of exponents of WIDE: products of two and sums of many stay finite in the type.
_OFFSET = {"float64": 1000.0, "float32": 1000.0, "float16": 8.0, "bfloat16": 100.0}
_EXPONENTS = {"float64": (-60, 60), "float32": (-20, 20), "float16": (-8, 2), "bfloat16": (-20, 20)}
_TIES = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
_SMALL = 2.0**-7  # its square is about 6e-5
_OUTLIERS = {"float64": (2, 11), "float32": (2, 11), "float16": (2, 5), "bfloat16": (2, 11)}  # exponents
_RARE = 1 / 64  # share of outliers, at most


@dataclass(frozen=True)
class Span:
    """The array's shape, the longest sum that it takes part in, and whether it is the sharp input of INTEGERS."""

    shape: tuple[int, ...]
    length: int
    sharp: bool


def draw_floats(distribution: Distribution, dtype: DType, span: Span, rng: np.random.Generator) -> NDArray[Any]:
    """Return float64 values of `span.shape`, not yet rounded to `dtype`."""
    match distribution:
        case Distribution.ZEROS:
            return np.zeros(span.shape)
        case Distribution.OFFSET:
            return _OFFSET[dtype] + rng.standard_normal(span.shape)
        case Distribution.WIDE:
            low, high = _EXPONENTS[dtype]
            sign = rng.choice(np.array([-1.0, 1.0]), span.shape)
            # Built by ldexp, which is exact, since exp2 differs between machines in the last place.
            return sign * np.ldexp(1 + rng.random(span.shape), rng.integers(low, high, span.shape))
        case Distribution.TIES:
            return rng.choice(_TIES, span.shape)
        case Distribution.INTEGERS:
            return _exact(dtype, span, rng)
        case Distribution.NORMAL:
            return rng.standard_normal(span.shape)
        case Distribution.SMALL:
            return _SMALL * rng.standard_normal(span.shape)
        case Distribution.OUTLIERS:
            return _with_outliers(rng.standard_normal(span.shape), _OUTLIERS[dtype], rng)
        case Distribution.SMOOTH:
            return 2.0 * smooth(span.shape, rng) - 1.0


def draw_integers(
    distribution: Distribution, bounds: tuple[int, int], span: Span, rng: np.random.Generator
) -> NDArray[Any]:
    """Return integers of `span.shape` from `bounds`, both included; int64, or uint64 where they reach beyond it.

    ZEROS takes what is nearest to zero, TIES five values, OFFSET the upper eighth; SMALL an eighth about what is
    nearest to zero, OUTLIERS the same with a few at the ends, SMOOTH goes slowly from end to end; all others the whole
    interval, WIDE with one in eight at its ends or next to zero.
    """
    low, high = bounds
    kind = np.uint64 if high > np.iinfo(np.int64).max else np.int64
    if distribution is Distribution.SMOOTH:
        return _between(bounds, smooth(span.shape, rng), kind)
    if distribution is Distribution.ZEROS:
        return np.full(span.shape, min(max(0, low), high), dtype=kind)
    if distribution is Distribution.TIES:
        few = sorted({low + (high - low) * part // 4 for part in range(5)})
        return rng.choice(np.array(few, dtype=kind), span.shape)
    if distribution is Distribution.OFFSET:
        low = high - (high - low) // 8
    if distribution in (Distribution.SMALL, Distribution.OUTLIERS):
        nearest, reach = min(max(0, low), high), max((high - low) // 16, 3)
        low, high = max(low, nearest - reach), min(high, nearest + reach)
    values = rng.integers(low, high, span.shape, dtype=kind, endpoint=True)
    if distribution is Distribution.WIDE:
        edges = np.array([min(max(edge, low), high) for edge in (low, low + 1, -1, 0, 1, high - 1, high)], dtype=kind)
        values = np.where(rng.random(span.shape) < 1 / 8, rng.choice(edges, span.shape), values)
    if distribution is Distribution.OUTLIERS:
        ends = rng.choice(np.array(bounds, dtype=kind), span.shape)
        values = np.where(rng.random(span.shape) < _RARE, ends, values)
    return values


def smooth(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
    """Return values between 0 and 1, both of them often, that change little from place to place along both last axes.

    All arrays show parts of one pattern, each moved by up to 8 places, so that two of a call are alike but for a shift;
    one place in 32 is off by up to 1/16, and one in 256 by more. Waves are triangles, whose steps are exact.
    """
    wide = shape[-1]
    rows = np.arange(np.prod(shape, dtype=np.int64) // wide, dtype=np.int64)[:, None] + rng.integers(0, 9)
    columns = np.arange(wide, dtype=np.int64)[None, :] + rng.integers(0, 9)
    waves = _triangle(rows, 29) + _triangle(columns, 41) + _triangle(rows + 2 * columns, 97)
    noise = np.where(rng.random(waves.shape) < 1 / 32, rng.random(waves.shape) / 8 - 1 / 16, 0.0)
    noise += np.where(rng.random(waves.shape) < 1 / 256, rng.random(waves.shape) - 0.5, 0.0)
    values: NDArray[Any] = np.clip(2.0 * (waves / 3.0) - 0.5 + noise, 0.0, 1.0)
    return values.reshape(shape)


def _triangle(places: NDArray[np.int64], length: int) -> NDArray[np.float64]:
    """From 0 up to 1 within `length` places, and down again."""
    return np.abs(places % (2 * length) - length) / length


def _between(bounds: tuple[int, int], share: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Integers of an interval at `share` of the way from its lower end to its upper one."""
    low, high = bounds
    steps = np.minimum(np.rint(share * float(high - low)).astype(np.uint64), np.uint64(high - low))
    return (steps + np.uint64(low % 2**64)).astype(kind)  # modulo 2**64, as the type has it


def _outliers(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Where outliers are: about one place a line, one in 64 at most, and the first of every second line."""
    found: NDArray[np.bool_] = rng.random(shape) < min(_RARE, 1 / shape[-1])
    found[..., 0] |= rng.random(found[..., 0].shape) < 0.5
    return found


def _with_outliers(values: NDArray[Any], exponents: tuple[int, int], rng: np.random.Generator) -> NDArray[Any]:
    """`values` with outliers among them, which are of one power of two, up to twice it, along a line."""
    lines = (*values.shape[:-1], 1)
    size = np.ldexp(1 + rng.random(values.shape), rng.integers(*exponents, lines)) * rng.choice((-1.0, 1.0), lines)
    return np.where(_outliers(values.shape, rng), size, values)


def integer_bounds(
    distribution: Distribution, stated: tuple[int | None, int | None], limits: tuple[int, int]
) -> tuple[int, int]:
    """Return the interval to draw integers from: the contract's bounds where it states them.

    On a side without a bound, WIDE goes to the end of the type (`limits`), so that a narrower type inside shows; all
    others stay within 100 of zero (or of the one bound that is stated), so that short sums do not overflow.
    """
    low, high = stated
    if distribution is Distribution.WIDE:
        return limits[0] if low is None else low, limits[1] if high is None else high
    reach = 100
    if low is None:
        low = max(limits[0], -reach if high is None else min(-reach, high - reach))
    if high is None:
        high = min(limits[1], max(reach, low + reach))
    return low, high


def _exact(dtype: DType, span: Span, rng: np.random.Generator) -> NDArray[Any]:
    width, significand = INTEGER_BITS[dtype]
    # A quarter of the budget of 2**significand goes to the small values, a quarter to the odd ones.
    small = min(2 / 3, 2.0 ** (significand - 2) / span.length)
    values = np.where(rng.random(span.shape) < small, rng.choice(np.array([-1.0, 1.0]), span.shape), 0.0)
    if span.sharp:
        odd = 2.0 ** (width - 1) + 1 + 2 * rng.integers(0, 2 ** (width - 2), span.shape)
        share = min(0.25, 2.0 ** (significand - width - 2) / span.length)
        if span.length * 2**width < 2**significand:
            share = 0.25
        sign = rng.choice(np.array([-1.0, 1.0]), span.shape)
        values = np.where(rng.random(span.shape) < share, sign * odd, values)
    return values
