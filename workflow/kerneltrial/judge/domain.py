"""Does a plan answer every shape that the contract allows? Told without running anything."""

import ast
import itertools
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from kerneltrial.inputs.expressions import tree
from kerneltrial.inputs.paths import Path, casts, wanted
from kerneltrial.inputs.resolve import (
    MAXIMUM_BLOCK,
    MAXIMUM_CLUSTER,
    MAXIMUM_GRID,
    MAXIMUM_SHARED_BYTES,
    MAXIMUM_THREADS,
    PlanProblem,
)
from kerneltrial.inputs.shape_search import domain, exists, find
from kerneltrial.inputs.spans import truth
from kerneltrial.judge.setup import Subject
from kerneltrial.records.contract import Contract, Range
from kerneltrial.records.plan import Launch, LaunchPlan
from kerneltrial.records.reason import Finding

_CORNERS: Final = 256
_NEAR: Final = 64
_CELLS: Final = 96  # for a size over the limits, which is a corner's where it is anywhere


def uncovered(subject: Subject, contract: Contract) -> Finding | None:
    """The first shape, of many over the contract's ranges, for which the plan has no launch that is allowed.

    After the corners: shapes beside the numbers that the plan holds, one that no variant takes, and for each variant
    one that is launched over CUDA's limits, where a search finds such shapes.
    """
    for dimensions in itertools.chain(_shapes(contract), _near(subject.plan, contract), _worst(subject.plan, contract)):
        try:
            subject.call(contract, dimensions)
        except PlanProblem as problem:
            return problem.finding
    return None


def _shapes(contract: Contract) -> Iterator[dict[str, int]]:
    """Corners of the ranges, and of their middles; all mixed, up to a limit."""
    names = list(contract.dimensions)
    values = [_values(contract.dimensions[name]) for name in names]
    for sizes in itertools.islice(itertools.product(*values), _CORNERS):
        yield dict(zip(names, sizes, strict=True))
    for place in range(max(map(len, values), default=0)):
        yield {name: own[min(place, len(own) - 1)] for name, own in zip(names, values, strict=True)}


def _values(span: Range) -> list[int]:
    """Least, most, and some between: multiples of what the range asks for; the ends come first."""
    step = span.multiple_of
    least, most = -(-span.minimum // step), span.maximum // step
    middle = (least * most) ** 0.5
    wanted = (least, most, int(middle), int(middle) | 1, (least + most) // 2)
    return list(dict.fromkeys(step * min(max(value, least), most) for value in wanted))


def _near(plan: LaunchPlan, contract: Contract) -> Iterator[dict[str, int]]:
    """Each number of the plan, and those beside it, as each dimension in turn, the others at their least."""
    least = {name: _values(span)[0] for name, span in contract.dimensions.items()}
    seen: set[tuple[str, int]] = set()
    for number in _numbers(plan):
        for (name, span), off in itertools.product(contract.dimensions.items(), (-1, 0, 1)):
            size = (number + off * span.multiple_of) // span.multiple_of * span.multiple_of
            if span.minimum <= size <= span.maximum and (name, size) not in seen and len(seen) < _NEAR:
                seen.add((name, size))
                dimensions = {**least, name: size}
                if exists(contract, dimensions):
                    yield dimensions


def _numbers(plan: LaunchPlan) -> list[int]:
    """The integers in a plan's conditions, and in comparisons that its sizes make."""
    launches = [launch for variant in plan.variants for launch in variant.launches]
    sizes = [text for each in launches for text in (*each.grid, *each.block, each.shared_bytes, *casts(each))]
    sizes += [scratch.elements for scratch in plan.scratch]
    compared = [n for text in dict.fromkeys(sizes) for n in ast.walk(tree(text)) if isinstance(n, ast.Compare)]
    parts = (part for node in (*(tree(v.when) for v in plan.variants), *compared) for part in ast.walk(node))
    return list(dict.fromkeys(p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, int)))


def _worst(plan: LaunchPlan, contract: Contract) -> Iterator[dict[str, int]]:
    """A shape that no variant takes, and shapes that a variant launches over a limit, where there are such."""
    hole = find(contract, wanted(plan, Path(len(plan.variants))))
    if hole.dimensions is not None:
        yield hole.dimensions
    whole = domain(contract)
    for place, variant in enumerate(plan.variants):
        conditions = (_tree(text) for launch in variant.launches for text in _over(launch))
        over = [each for each in conditions if truth(each, whole) is not False]
        if over:
            wants = ((ast.BoolOp(op=ast.Or(), values=over), True), *wanted(plan, Path(place)))
            over_limits = find(contract, wants, _CELLS, order="largest")
            if over_limits.dimensions is not None:
                yield over_limits.dimensions


def _over(launch: Launch) -> Iterator[str]:
    """Conditions under which a launch is not allowed. Sizes without names were told at the corners."""
    for sizes, limits in ((launch.grid, MAXIMUM_GRID), (launch.block, MAXIMUM_BLOCK)):
        for size, limit in zip(sizes, limits, strict=True):
            yield f"not (1 <= ({size}) <= {limit})"
    yield " * ".join(f"({size})" for size in launch.block) + f" > {MAXIMUM_THREADS}"
    yield " * ".join(f"({size})" for size in launch.cluster) + f" > {MAXIMUM_CLUSTER}"
    yield f"not (0 <= ({launch.shared_bytes}) <= {MAXIMUM_SHARED_BYTES})"


@lru_cache(maxsize=4096)
def _tree(text: str) -> ast.expr:
    """Parsed without the limit of length; what it is made of was allowed before."""
    return ast.parse(text, mode="eval").body
