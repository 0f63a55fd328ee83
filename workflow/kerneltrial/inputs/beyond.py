"""One case whose largest array has more than 2**31 elements: where indices of 32 bits end.

It is the cheapest that the contract allows: dimensions are raised one after the other, the last no further than it must
be, in the order that moves the fewest bytes. Values repeat (`inputs.values`), so that they can be made and sent.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Final

from kerneltrial.inputs.contracts import array_shapes
from kerneltrial.inputs.dtypes import item_bytes
from kerneltrial.inputs.expressions import ExpressionProblem, evaluate
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.case import Case
from kerneltrial.records.contract import Contract, Range

ELEMENTS: Final = 2**31
_OUTPUT_BYTES: Final = 2**32 - 2**20  # what a reply can hold of one output
_ORDERS: Final = 120


def beyond(contract: Contract, seed: int, elements: int = ELEMENTS) -> Case | None:
    """The case, or None where the contract allows none, or only with outputs that are too large to be brought back."""
    if any(array.ascending for array in contract.arrays):
        return None
    found = []
    for order in _orders(tuple(contract.dimensions)):
        dimensions = _raised(contract, order, elements)
        if dimensions is not None and _outputs_fit(contract, dimensions):
            found.append((evaluate(contract.bytes, dimensions), sorted(dimensions.items())))
    if not found:
        return None
    return Case(name="beyond_int32", kind="correctness", dimensions=dict(min(found)[1]), seed=seed)


def bytes_of(contract: Contract, case: Case) -> tuple[int, int]:
    """Bytes of all arrays, and of the largest one."""
    shapes = array_shapes(contract, case.dimensions)
    sizes = [math.prod(shapes[array.name]) * item_bytes(array.dtype) for array in contract.arrays]
    return sum(sizes), max(sizes)


def _orders(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for number, order in enumerate(permutations(names)):
        if number == _ORDERS:
            return
        yield order


def _raised(contract: Contract, order: Sequence[str], elements: int) -> dict[str, int] | None:
    spans = contract.dimensions
    dimensions = {name: _multiple(spans[name], spans[name].minimum) for name in spans}
    for name in order:
        most = {**dimensions, name: spans[name].maximum // spans[name].multiple_of * spans[name].multiple_of}
        if _largest(contract, most) > elements:
            return {**dimensions, name: _least(contract, dimensions, name, elements)}
        dimensions = most
    return None


def _least(contract: Contract, dimensions: dict[str, int], name: str, elements: int) -> int:
    """The least multiple with which an array is large enough, by bisection; the most is."""
    step = contract.dimensions[name].multiple_of
    low, high = dimensions[name] // step, contract.dimensions[name].maximum // step
    while low < high:
        middle = (low + high) // 2
        if _largest(contract, {**dimensions, name: middle * step}) > elements:
            high = middle
        else:
            low = middle + 1
    return high * step


def _multiple(span: Range, least: int) -> int:
    return -(-least // span.multiple_of) * span.multiple_of


def _largest(contract: Contract, dimensions: dict[str, int]) -> int:
    try:
        return max(math.prod(shape) for shape in array_shapes(contract, dimensions).values())
    except (InputProblem, ExpressionProblem):
        return 0


def _outputs_fit(contract: Contract, dimensions: dict[str, int]) -> bool:
    shapes = array_shapes(contract, dimensions)
    return all(math.prod(shapes[a.name]) * item_bytes(a.dtype) <= _OUTPUT_BYTES for a in contract.outputs)
