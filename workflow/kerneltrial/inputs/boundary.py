"""Boundary shapes: dimensions at which kernels with wrong guards, tiles or leading dimensions show it."""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from kerneltrial.inputs.contracts import array_shapes
from kerneltrial.inputs.expressions import evaluate
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.case import Case, Cases
from kerneltrial.records.contract import Contract, Range

_WARP = (31, 32, 33)
_TILES = (7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257)
_EVEN = (2, 6, 10, 18, 34, 66, 130)
_PRIMES = (3, 5, 11, 13, 19, 23, 29, 37, 41, 47, 53, 61, 67, 79, 97, 101, 113, 131, 149, 173, 199, 251)
_LONG = 1035  # odd, and a multiple of 3, 5 and 9, for tall and flat shapes
SHARE = 16  # a boundary shape has at most this part of the operations of the largest case

Dimensions = dict[str, int]


def boundary_shapes(contract: Contract, cases: Cases, count: int, seed: int) -> list[Dimensions]:
    """Return up to `count` distinct dimensions from the contract's domain that are none of the cases'.

    In this order: the smallest shape; 31, 33, 32 and 34 everywhere; one dimension at its least and the others multiples
    of 8 that fill no tile; one dimension long and odd and the others short multiples of 8 (tall, flat); then a random
    mix of warp and tile sizes plus or minus 1 and 2 and primes, drawn from `seed`. So each dimension is once the only
    one that is no multiple of anything, where a kernel may load 16 bytes at a time, and every remainder by 4 occurs. A
    shape that costs more than a 16th of the largest case (or 2**21), in operations or in float32 elements moved, is
    made smaller, longest dimension first. Fewer are returned where the domain holds fewer.
    """
    limit = max(2**21, max(cost(contract, case.dimensions) for case in cases.cases) // SHARE)
    seen = {_key(case.dimensions) for case in cases.cases}
    found: list[Dimensions] = []
    for wish in islice(_wishes(contract.dimensions, seed), 64 + 16 * count):
        shape = _affordable(
            contract, {name: _fit(wish[name], span) for name, span in contract.dimensions.items()}, limit
        )
        if len(found) < count and shape is not None and _key(shape) not in seen:
            seen.add(_key(shape))
            found.append(shape)
    return found


def boundary_cases(shapes: list[Dimensions], seed: int) -> tuple[Case, ...]:
    """Return a correctness case for each shape, named after it; values are drawn from `seed`."""
    return tuple(
        Case(name=f"boundary_{number}", kind="correctness", dimensions=shape, seed=seed)
        for number, shape in enumerate(shapes, 1)
    )


def _key(dimensions: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(dimensions.items()))


def _wishes(spans: Mapping[str, Range], seed: int) -> Iterator[Dimensions]:
    """Wanted shapes, endless; the domain may not hold them as they are."""
    names = list(spans)
    yield dict.fromkeys(names, 1)
    for size in (31, 33, 32, 34):
        yield dict.fromkeys(names, size)
    for thin in names:
        yield {name: 1 if name == thin else 40 + 8 * place for place, name in enumerate(names)}
    for long in names:
        yield {name: _LONG if name == long else 8 + 8 * place for place, name in enumerate(names)}
    rng = np.random.Generator(np.random.PCG64(_seed(seed)))
    pool = (*_WARP, *_TILES, *_EVEN, *_PRIMES)
    while True:
        yield {name: int(rng.choice(pool)) for name in names}


def _seed(seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"boundary shapes\0{seed}".encode()).digest(), "little")


def _fit(wish: int, span: Range) -> int:
    """The value of the range that is nearest to `wish`, from below where there is one."""
    step = span.multiple_of
    least, most = -(-span.minimum // step) * step, span.maximum // step * step
    return min(max(wish // step * step, least), most)


def cost(contract: Contract, dimensions: Mapping[str, int]) -> int:
    """The larger of operations and float32 elements moved, by the contract's word."""
    return max(evaluate(contract.operations, dimensions), evaluate(contract.bytes, dimensions) // 4)


def _affordable(contract: Contract, shape: Dimensions, limit: int) -> Dimensions | None:
    """Halve the largest dimension until the shape costs at most `limit`; None where that cannot be."""
    while True:
        try:
            array_shapes(contract, shape)
            if cost(contract, shape) <= limit:
                return shape
        except InputProblem:
            return None
        name = max(shape, key=lambda each: (shape[each], each))
        smaller = _fit(shape[name] // 2 + 1, contract.dimensions[name])
        if smaller >= shape[name]:
            return None
        shape = {**shape, name: smaller}
