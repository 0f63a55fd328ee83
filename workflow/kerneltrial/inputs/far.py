"""Far shapes: each dimension in turn beyond every case, up to the contract's maximum, in calls thin enough to afford.

A kernel that is wrong above some size of one dimension passes every shape below it, and the contract allows sizes that
no case has. The other dimensions are small and odd then, so that the call stays cheap. How far a dimension is taken
follows from contract and cases alone, so that whoever has the lock can work out what was tried.

Each is run once, and what a kernel does for its size alone may be right for normal values and for no others (a maximum
that is not subtracted, products in TF32). So the largest size has exact integers or a wide range, one dimension after
the other, and a sealed one the values of a draw that its seed chooses (`draw_of`). The size between has normal values,
which show a wrong index soonest, and is odd where it may be, as the largest one is often a multiple of everything.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kerneltrial.inputs.contracts import array_shapes
from kerneltrial.inputs.digits import drawn
from kerneltrial.inputs.expressions import ExpressionProblem, evaluate, names
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.values import ROTATION
from kerneltrial.records.case import Case, Cases, Distribution, Generated
from kerneltrial.records.contract import Contract, Range

OPERATIONS: Final = 2**21  # of a far call, at most
ELEMENTS: Final = 2**20  # that it moves, of 4 bytes, at most
TILED: Final = 2**20  # and that the call would move that a kernel's tiles make of it
# Threads or elements that a kernel spends on one step of a dimension, however thin the others are: many where each step
# is a block of its own, as along the first axis of an output, few elsewhere.
_BLOCK: Final = 256
_STEP: Final = 16
_WARP: Final = 32  # threads that a step of an output's first axis has at least, where a kernel has others to add up
THREADS: Final = 2**23  # of a far call, at most, by that
_SMALL: Final = (1, 3, 5, 7, 9)
_AT_MOST: Final = (Distribution.INTEGERS, Distribution.WIDE)
_SEALED: Final = "sealed_far_"


@dataclass(frozen=True)
class Reach:
    """How far a dimension goes: `public` in the cases, `most` in far shapes (0: in none), `allowed` by the contract."""

    public: int
    most: int
    allowed: int


def reaches(contract: Contract, cases: Cases) -> dict[str, Reach]:
    """Each dimension that the contract allows to be larger than in every case, and how far it can be tried."""
    found = {}
    for name, span in contract.dimensions.items():
        public = max((case.dimensions[name] for case in cases.cases), default=0)
        allowed = span.maximum // span.multiple_of * span.multiple_of
        if allowed > public:
            most = _most_affordable(contract, name)
            found[name] = Reach(public=public, most=most if most > public else 0, allowed=allowed)
    return found


def far_cases(contract: Contract, cases: Cases, seed: int) -> tuple[Case, ...]:
    """For each dimension that can be larger than in every case: its most, and a size between, drawn from `seed`.

    At its most values are exact integers or of a wide range, between they are normal (see above).
    """
    found = []
    inputs = [array.name for array in contract.arrays if array.role != "output"]
    for number, (name, reach) in enumerate(reaches(contract, cases).items()):
        if not reach.most:
            continue
        rng = np.random.Generator(np.random.PCG64(_seed(f"far shapes\0{seed}\0{name}".encode())))
        thin = _thin(contract, name, _SMALL[0], _SMALL[1])
        sizes = {"far": reach.most}
        below = replace(reach, most=reach.most - contract.dimensions[name].multiple_of)
        if below.most > reach.public:
            sizes["middle"] = _between(contract.dimensions[name], below, rng)
            if contract.dimensions[name].multiple_of == 1:
                sizes["middle"] = _odd(sizes["middle"], below)
        sharp = Generated(distribution=_AT_MOST[number % len(_AT_MOST)])
        found += [
            Case(
                name=f"{place}_{name}",
                kind="correctness",
                dimensions={**thin, name: size},
                seed=seed,
                inputs=dict.fromkeys(inputs, sharp) if place == "far" else {},
            )
            for place, size in sizes.items()
        ]
    return tuple(found)


def draw_of(case: Case) -> int:
    """Which draw a case that is run once has: the first, and of a sealed far one that which its seed chooses."""
    return case.seed % len(ROTATION) if case.name.startswith(_SEALED) else 0


def sealed_far_cases(contract: Contract, known: Mapping[str, Reach], salt: bytes, candidate_id: str) -> list[Case]:
    """One sealed case for each dimension of `known` (see `reaches`): larger than any public one, and affordable.

    The others are small and odd. Drawn from HMAC-SHA256(salt, the candidate's digest and the dimension's name).
    """
    found = []
    for name, reach in known.items():
        if not reach.most:
            continue
        material = hmac.new(salt, f"far {candidate_id} {name}".encode(), hashlib.sha256).digest()
        rng = np.random.Generator(np.random.PCG64(int.from_bytes(material, "little")))
        thin = _thin(contract, name, *(int(size) for size in rng.choice(_SMALL, 2)))
        size = _between(contract.dimensions[name], reach, rng)
        seed = int(rng.integers(0, 2**53))  # exact in every JSON reader
        found.append(Case(name=f"{_SEALED}{name}", kind="correctness", dimensions={**thin, name: size}, seed=seed))
    return found


def out_of_reach(contract: Contract, cases: Cases) -> tuple[str, ...]:
    """The ranges of dimensions that no shape tries, in words, since a call of that size is too much work."""
    return tuple(
        f"{name} above {max(reach.most, reach.public):,} (the contract allows {reach.allowed:,})"
        for name, reach in reaches(contract, cases).items()
        if reach.most < reach.allowed
    )


def _between(span: Range, reach: Reach, rng: np.random.Generator) -> int:
    """A size above the public one; small and large numbers of digits are as likely, so the middle is geometric."""
    step = span.multiple_of
    above = min((reach.public // step + 1) * step, reach.most)
    return drawn(Range(minimum=above, maximum=reach.most), span, rng)


def _odd(size: int, reach: Reach) -> int:
    """The size, or its odd neighbour that lies above the public one."""
    return size if size % 2 else size - 1 if size - 1 > reach.public else min(size + 1, reach.most)


def _thin(contract: Contract, name: str, *sizes: int) -> dict[str, int]:
    """Small sizes, in turn, for all dimensions but one: as near to them as the ranges allow."""
    others = [other for other in contract.dimensions if other != name]
    return {other: _fit(sizes[place % len(sizes)], contract.dimensions[other]) for place, other in enumerate(others)}


def _fit(wish: int, span: Range) -> int:
    step = span.multiple_of
    return min(max(-(-span.minimum // step), wish // step), span.maximum // step) * step


def _most_affordable(contract: Contract, name: str) -> int:
    """The largest multiple that is affordable, by bisection; 0 where none is."""
    span = contract.dimensions[name]
    step = span.multiple_of
    low, high = -(-span.minimum // step) - 1, span.maximum // step
    while low < high:
        middle = (low + high + 1) // 2
        if _is_affordable(contract, name, middle * step):
            low = middle
        else:
            high = middle - 1
    return low * step if _is_affordable(contract, name, low * step) else 0


def _is_affordable(contract: Contract, name: str, size: int) -> bool:
    others = len(contract.dimensions) - 1
    leads = any(name in names(output.shape[0]) for output in contract.outputs if output.shape)
    side = int((_BLOCK if leads else _STEP) ** (1 / others)) if others else 1
    tile = {**_thin(contract, name, side), name: size}
    thin = {**_thin(contract, name, *_SMALL), name: size}
    if leads and others and size * _WARP > THREADS:
        return False
    return (
        _within(contract, tile, contract.bytes, 4 * TILED)
        and _within(contract, thin, contract.bytes, 4 * ELEMENTS)
        and _within(contract, thin, contract.operations, OPERATIONS)
    )


def _within(contract: Contract, dimensions: Mapping[str, int], expression: str, limit: int) -> bool:
    try:
        array_shapes(contract, dimensions)
        return evaluate(expression, dimensions) <= limit
    except (InputProblem, ExpressionProblem):
        return False


def _seed(text: bytes) -> int:
    return int.from_bytes(hashlib.sha256(text).digest(), "little")
