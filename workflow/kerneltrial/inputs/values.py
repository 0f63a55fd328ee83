"""Values of a call's inputs: drawn from seeds, or read from `.npy` files.

Every array has its own PCG64 stream, seeded by SHA-256 of (case's seed, case's name, draw, argument's name), so that
values depend on nothing else but NumPy's version (which the lock holds): neither on the order of calls nor on the
machine. Of arrays above LARGE_ELEMENTS the first PERIOD values are drawn, and they repeat.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrial.inputs.cases import load_stored
from kerneltrial.inputs.contracts import array_shapes, bounded, integer_range
from kerneltrial.inputs.distributions import INTEGER_BITS, Span, draw_floats, draw_integers, integer_bounds
from kerneltrial.inputs.dtypes import from_bytes, is_float, narrow, numpy_dtype, to_bytes
from kerneltrial.inputs.expressions import evaluate
from kerneltrial.inputs.large import LARGE_ELEMENTS, PERIOD
from kerneltrial.inputs.specials import kinds_in, kinds_of, own_axis, put_among
from kerneltrial.records.case import Case, Distribution, Generated, Stored
from kerneltrial.records.contract import Array, Contract, Special

__all__ = ["ROTATION", "distribution_of", "draw_names", "from_bytes", "generate", "to_bytes"]

# Draws after a case's own, in turn; the sharpest first, since a protocol may ask for five draws only.
ROTATION = (
    Distribution.INTEGERS,
    Distribution.OFFSET,
    Distribution.WIDE,
    Distribution.TIES,
    Distribution.NORMAL,
    Distribution.ZEROS,
    Distribution.SMALL,
    Distribution.OUTLIERS,
    Distribution.SMOOTH,
)


@dataclass(frozen=True)
class _Among:
    """Special values that come among the others, and the axis whose lines may be of one kind."""

    kinds: tuple[Special, ...]
    axis: int | None


def distribution_of(case: Case, draw: int, name: str) -> Distribution | None:
    """Return how the values of input `name` are drawn, or None where they come from a file."""
    if draw > 0:
        return ROTATION[(draw - 1) % len(ROTATION)]
    source = case.inputs.get(name, Generated())
    return source.distribution if isinstance(source, Generated) else None


def draw_names(case: Case, draws: int) -> tuple[str, ...]:
    """Return a name for each draw: `own` for the case's own values, then `integers_1`, `offset_2` and so on.

    A name that begins with `zeros` stands for a draw in which every input is zero (as far as the contract's bounds
    allow); `own` becomes `zeros_0` where the case itself asks for that in all named inputs.
    """
    sources = list(case.inputs.values())
    all_zero = bool(sources) and all(
        isinstance(source, Generated) and source.distribution is Distribution.ZEROS for source in sources
    )
    own = "zeros_0" if all_zero else "own"
    rotated = (f"{ROTATION[(draw - 1) % len(ROTATION)].value}_{draw}" for draw in range(1, draws))
    return (own, *rotated)[:draws]


def generate(contract: Contract, case: Case, draw: int, folder: Path = Path()) -> dict[str, NDArray[Any]]:
    """Return the values of every input and inout, by name, in the contract's NumPy form and shape.

    Draw 0 has the sources that the case names; further draws rotate through `ROTATION`. Draws of TIES also have the
    contract's special values. `folder` is where the cases'
    file lies: paths of `.npy` files are relative to it.

    Raises
    ------
    InputProblem
        Where an `.npy` file is not what the case says.
    """
    shapes = array_shapes(contract, case.dimensions)
    arrays = [bounded(array, case.dimensions) for array in contract.arrays if array.role != "output"]
    span = reduction_span(contract, case.dimensions, shapes)
    floats = [array.name for array in arrays if is_float(array.dtype)]
    wide = floats[_entropy(case, draw, "") % len(floats)] if floats else ""
    specials = _specials_of(contract, case, draw, shapes)
    found: dict[str, NDArray[Any]] = {}
    for array in arrays:
        distribution = distribution_of(case, draw, array.name)
        if distribution is None:
            source = case.inputs[array.name]
            assert isinstance(source, Stored)
            found[array.name] = load_stored(source, array, shapes[array.name], folder)
            continue
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(_entropy(case, draw, array.name))))
        shaped = Span(shapes[array.name], span, sharp=array.name == wide)
        kinds = specials.get(array.name, ()) if distribution is Distribution.TIES else ()
        among = _Among(kinds, own_axis(array, contract))
        found[array.name] = _drawn(array, distribution, shaped, rng, among)
    return found


def _specials_of(
    contract: Contract, case: Case, draw: int, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[Special, ...]]:
    """The special values that each input gets in a draw of TIES, by name."""
    possible = {array.name: kinds_of(array, contract) for array in contract.arrays}
    allowed = list(dict.fromkeys(kind for kinds in possible.values() for kind in kinds))
    outputs = min(math.prod(shapes[array.name]) for array in contract.outputs)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(_entropy(case, draw, "specials of all"))))
    kinds = kinds_in(allowed, outputs, rng)
    return {name: tuple(kind for kind in own if kind in kinds) for name, own in possible.items()}


def reduction_span(contract: Contract, dimensions: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Return a length that no sum behind one output element should exceed.

    It is the larger of the longest axis of an array, and the contract's operations per output element (a dot product
    of length k has 2k).
    """
    outputs = sum(math.prod(shapes[array.name]) for array in contract.outputs)
    operations = evaluate(contract.operations, dimensions)
    return max(1, *(max(shape) for shape in shapes.values()), -(-operations // outputs))


def _entropy(case: Case, draw: int, name: str) -> int:
    text = f"{case.seed}\0{case.name}\0{draw}\0{name}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")


def _drawn(
    array: Array, distribution: Distribution, span: Span, rng: np.random.Generator, among: _Among
) -> NDArray[Any]:
    if math.prod(span.shape) > LARGE_ELEMENTS and not array.ascending:
        flat = replace(among, axis=None)
        block = _drawn(array, distribution, replace(span, shape=(PERIOD,)), rng, flat)
        return np.resize(block, span.shape)
    low = None if array.low is None else float(array.low)
    high = None if array.high is None else float(array.high)
    if array.dtype in INTEGER_BITS:
        values = _bounded(draw_floats(distribution, array.dtype, span, rng), low, high, distribution, rng)
        return narrow(
            put_among(values, among.kinds, array.dtype, rng, among.axis) if among.kinds else values, array.dtype
        )
    stated = (None if array.low is None else int(array.low), None if array.high is None else int(array.high))
    bounds = integer_bounds(distribution, stated, integer_range(array.dtype))
    drawn = draw_integers(distribution, bounds, span, rng).astype(numpy_dtype(array.dtype))
    if array.ascending:
        drawn.sort()
        drawn[0], drawn[-1] = bounds  # the last wins where there is one place only
    return drawn


def _bounded(
    values: NDArray[Any], low: float | None, high: float | None, distribution: Distribution, rng: np.random.Generator
) -> NDArray[Any]:
    """Bring values into [low, high] without piling them up at an end.

    With one bound, what lies beyond is mirrored at it, which keeps integers integers. With two, values are kept where
    most of them fit already, and drawn evenly over the interval otherwise. Then all are clipped.
    """
    if low is None and high is None:
        return values
    if distribution is not Distribution.ZEROS:
        if low is None or high is None:
            bound = low if low is not None else high
            assert bound is not None
            side = np.abs(values - bound)
            values = bound + side if low is not None else bound - side
        elif float(np.mean((values >= low) & (values <= high))) < 0.9:
            values = rng.uniform(low, high, values.shape)
            if distribution is Distribution.TIES:
                values = low + np.round((values - low) / (high - low or 1) * 4) / 4 * (high - low)
            if distribution is Distribution.INTEGERS and math.floor(high) >= math.ceil(low):
                values = np.clip(np.round(values), math.ceil(low), math.floor(high))
    clipped: NDArray[Any] = np.clip(values, low, high)
    return clipped
