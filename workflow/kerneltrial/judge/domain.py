"""Does a plan answer every shape that the contract allows? Told without running anything."""

import itertools
from collections.abc import Iterator
from typing import Final

from kerneltrial.inputs.resolve import PlanProblem
from kerneltrial.judge.setup import Subject
from kerneltrial.records.contract import Contract, Range
from kerneltrial.records.reason import Finding

_CORNERS: Final = 256


def uncovered(subject: Subject, contract: Contract) -> Finding | None:
    """The first shape, of many over the contract's ranges, for which the plan has no launch that is allowed."""
    for dimensions in _shapes(contract):
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
