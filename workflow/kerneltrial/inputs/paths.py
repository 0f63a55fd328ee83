"""Paths through a launch plan: which variant a shape takes, and how each comparison that the plan makes comes out.

A plan may treat one shape of millions unlike all others. So every path that some allowed shape takes is looked for
(`shape_search`), and the judge asks that a case takes it.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kerneltrial.inputs.expressions import tree
from kerneltrial.inputs.shape_search import Wants, leaves_of, names_in, point
from kerneltrial.inputs.spans import truth
from kerneltrial.records.plan import Launch, LaunchPlan


@dataclass(frozen=True)
class Path:
    """A variant by its place in the plan; with a `condition`, that one being true there, or not."""

    variant: int
    condition: str = ""
    holds: bool = True


def paths(plan: LaunchPlan) -> tuple[Path, ...]:
    """Every path of a plan as far as names go, whole variants first; shapes may exist for some alone."""
    whole = [Path(place) for place in range(len(plan.variants))]
    parts = [
        Path(place, condition, holds)
        for place in range(len(plan.variants))
        for condition in _conditions(plan, place)
        for holds in (True, False)
    ]
    return (*whole, *parts)


def paths_taken(plan: LaunchPlan, dimensions: Mapping[str, int]) -> frozenset[Path]:
    """The paths that one shape takes; none where no variant takes it."""
    cell = point(dimensions)
    place = next((p for p, variant in enumerate(plan.variants) if truth(tree(variant.when), cell)), None)
    if place is None:
        return frozenset()
    came = {text: truth(node, cell) for text, node in _conditions(plan, place).items()}
    return frozenset({Path(place), *(Path(place, text, holds) for text, holds in came.items() if holds is not None)})


def wanted(plan: LaunchPlan, path: Path) -> Wants:
    """The conditions of a path; a variant beyond the last stands for no variant at all."""
    whens = [tree(variant.when) for variant in plan.variants]
    part = [(_conditions(plan, path.variant)[path.condition], path.holds)] if path.condition else []
    here = [(when, True) for when in whens[path.variant : path.variant + 1]]
    return (*part, *here, *((when, False) for when in whens[: path.variant]))


def chooses(plan: LaunchPlan, path: Path) -> bool:
    """Whether a path is about which variant is taken, and not about how large its launches are."""
    return not path.condition or path.condition in _choosing(plan, path.variant)


def _conditions(plan: LaunchPlan, place: int) -> dict[str, ast.expr]:
    """The comparisons in a variant's condition and sizes, and what else is taken as true or false there, by text."""
    inside = [tree(text) for text in _expressions(plan, place)]
    return _choosing(plan, place) | _compared(inside)


def _choosing(plan: LaunchPlan, place: int) -> dict[str, ast.expr]:
    when = tree(plan.variants[place].when)
    leaves = {ast.unparse(leaf): leaf for leaf in leaves_of(when) if names_in(leaf)}
    return leaves | _compared([when])


def _compared(parts: Sequence[ast.expr]) -> dict[str, ast.expr]:
    nodes = (node for part in parts for node in ast.walk(part) if isinstance(node, ast.Compare))
    return {ast.unparse(node): node for node in nodes if names_in(node)}


def _expressions(plan: LaunchPlan, place: int) -> Iterator[str]:
    for scratch in plan.scratch:
        yield scratch.elements
    for launch in plan.variants[place].launches:
        yield from (*launch.grid, *launch.block, *launch.cluster, launch.shared_bytes, *casts(launch))


def casts(launch: Launch) -> Iterator[str]:
    """The expressions inside of `int32(...)` and `int64(...)` among a launch's arguments."""
    for argument in launch.args:
        kind, bracket, rest = argument.strip().partition("(")
        if bracket and kind in ("int32", "int64"):
            yield rest.removesuffix(")")
