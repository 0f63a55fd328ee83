"""Cases for what a plan does in shapes that no other case has: each path through the plan is taken by a judged case.

A path that no case takes gets the cheapest shape that takes it, with its free dimensions made larger than one, where
a wrong tile shows. What no shape was found for, or is too much work, is told: a person must look.
"""

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from kerneltrial.inputs.boundary import cost
from kerneltrial.inputs.paths import Path, chooses, paths, paths_taken, wanted
from kerneltrial.inputs.shape_search import CELLS, Found, exists, find
from kerneltrial.judge.setup import JudgeSetup
from kerneltrial.records.case import Case
from kerneltrial.records.contract import Contract
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.reason import Finding, Reason

CASES: Final = 12  # of one plan, at most
SEARCHES: Final = 64  # that may end without an answer or a shape
FULL: Final = 2**17  # operations of a case that is run as often as any other; more is run once, as far shapes are
ONCE: Final = 2**22  # of such a case, or as many as the largest case that is given has
_LARGER: Final = (2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 37)


@dataclass(frozen=True)
class Derived:
    """Further cases for one plan, and the names of those that are run once.

    `open` is what a person must look at, since a variant, or a reason to take it, was never seen; `unchecked` are ways
    of sizing a launch that were not.
    """

    cases: tuple[Case, ...] = ()
    once: frozenset[str] = frozenset()
    open: tuple[Finding, ...] = ()
    unchecked: tuple[Finding, ...] = ()


def derived(setup: JudgeSetup, plan: LaunchPlan, cases: Sequence[Case], once: Sequence[Case] = ()) -> Derived:
    """Cases for the paths of a plan that `cases` leave; the same for the same plan, contract and cases.

    `once`: cases that are run with one draw of values. What they alone take gets a case with every draw where one is
    cheap, and nothing is told where none is. The plan's names and expressions are known to be right (`check_plan`).
    """
    taken = {path for case in cases for path in paths_taken(plan, case.dimensions)}
    seen = {path for case in once for path in paths_taken(plan, case.dimensions)}
    most = max(ONCE, max(cost(setup.contract, case.dimensions) for case in setup.cases.cases))
    found: list[Case] = []
    left: dict[Path, str] = {}
    searches = SEARCHES
    for path in paths(plan):
        if path in taken or (path.condition and Path(path.variant) not in taken | seen):
            continue
        if searches == 0 or len(found) == CASES:
            left[path] = "" if path in seen else "it was not looked for, the plan has too many ways"
            continue
        searches -= 1
        shape = find(setup.contract, wanted(plan, path), CELLS)
        if path in seen:
            left[path] = ""
            if too_large(setup.contract, shape, FULL):
                continue
        else:
            left[path] = too_large(setup.contract, shape, most if chooses(plan, path) else ONCE)
        if shape.dimensions is not None and not left[path]:
            dimensions = larger(setup.contract, shape.dimensions, partial(_takes, plan, path))
            found.append(Case(name=shape_name(dimensions), kind="correctness", dimensions=dimensions, seed=setup.seed))
            taken |= paths_taken(plan, dimensions)
    return Derived(
        cases=tuple(found),
        once=frozenset(case.name for case in found if cost(setup.contract, case.dimensions) > FULL),
        open=(
            *_hole(setup.contract, plan),
            *(_finding(plan, path, why) for path, why in left.items() if why and chooses(plan, path)),
        ),
        unchecked=tuple(_finding(plan, path, why) for path, why in left.items() if why and not chooses(plan, path)),
    )


def _hole(contract: Contract, plan: LaunchPlan) -> tuple[Finding, ...]:
    """Where it stays open whether some shape is taken by no variant; one that is found ends the candidate's way."""
    if find(contract, wanted(plan, Path(len(plan.variants)))).settled:
        return ()
    detail = "whether every shape has a launch: no shape without one was found, and none was shown not to be"
    return (Finding(reason=Reason.NEEDS_REVIEW, detail=detail),)


def too_large(contract: Contract, found: Found, most: int) -> str:
    """Why no case can be made of what was found; empty where one can, or where no shape takes that path."""
    if found.dimensions is None:
        return "" if found.settled else "no shape was found that takes it, and none was shown not to"
    if cost(contract, found.dimensions) <= most:
        return ""
    sizes = ", ".join(f"{name}={size}" for name, size in found.dimensions.items())
    return f"the cheapest shape found is too large to run here ({sizes})"


def larger(contract: Contract, shape: Mapping[str, int], same: Callable[[Mapping[str, int]], bool]) -> dict[str, int]:
    """The shape with dimensions at their least made larger, while it takes the `same` path and stays cheap."""
    found = dict(shape)
    limit = max(FULL, cost(contract, shape))
    for size, (name, span) in itertools.product(_LARGER, contract.dimensions.items()):
        tried = {**found, name: size}
        allowed = found[name] < size <= span.maximum and size % span.multiple_of == 0
        if allowed and _affordable(contract, tried, limit) and same(tried):
            found = tried
    return found


def _takes(plan: LaunchPlan, path: Path, dimensions: Mapping[str, int]) -> bool:
    return path in paths_taken(plan, dimensions)


def _affordable(contract: Contract, shape: Mapping[str, int], limit: int) -> bool:
    return exists(contract, shape) and cost(contract, shape) <= limit


def shape_name(dimensions: Mapping[str, int]) -> str:
    """A name that says the sizes, in the contract's order: answers are kept by it, for every candidate."""
    name = "_".join(("variant", *map(str, dimensions.values())))
    return name if len(name) <= 64 else f"variant_{int(hashlib.sha256(name.encode()).hexdigest()[:12], 16)}"


def _finding(plan: LaunchPlan, path: Path, why: str) -> Finding:
    part = f", where {path.condition} is {'true' if path.holds else 'false'}" if path.condition else ""
    variant = f"variant {path.variant + 1} (when {plan.variants[path.variant].when}{part})"
    reason = Reason.NEEDS_REVIEW if chooses(plan, path) else Reason.CHECK_ABSENT
    return Finding(reason=reason, detail=f"{variant} of the plan is taken by no case: {why}")
