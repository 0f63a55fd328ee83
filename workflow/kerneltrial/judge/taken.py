"""Which ways through a plan's kernels some shapes take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kerneltrial.inputs.expressions import tree
from kerneltrial.inputs.shape_search import point
from kerneltrial.inputs.spans import Cell, Span, truth
from kerneltrial.judge.launched import Launched
from kerneltrial.judge.ways import Way
from kerneltrial.records.plan import LaunchPlan


@dataclass(frozen=True)
class Asked:
    """A way through a kernel, in one launch; `placed` are the registers of the thread's place that it speaks of."""

    launched: Launched
    way: Way
    placed: tuple[str, ...] = ()


class Look:
    """Which ways some shapes take; what a condition is in a shape is worked out once."""

    def __init__(self, plan: LaunchPlan, shapes: Sequence[dict[str, Span]]) -> None:
        self._plan = plan
        self._shapes: list[list[dict[str, Span]]] = [[] for _ in plan.variants]
        self._known: dict[tuple[int, int], bool | None] = {}
        self._kept: list[object] = []  # nodes are told apart by where they lie
        for shape in shapes:
            self.add(shape)

    def add(self, shape: dict[str, Span]) -> None:
        place = self._variant(shape)
        if place is not None:
            self._shapes[place].append(shape)

    def took(self, asked: Asked) -> bool:
        launched = asked.launched
        return any(self._all(asked, launched.cell(shape)) for shape in self._shapes[launched.variant])

    def takes(self, asked: Asked, dimensions: Mapping[str, int]) -> bool:
        shape = point(dimensions)
        cell = asked.launched.cell(shape)
        return self._variant(shape) == asked.launched.variant and all(
            truth(node, cell) in _enough(asked, holds) for node, holds in asked.way.wants
        )

    def _variant(self, shape: Cell) -> int | None:
        return next((p for p, variant in enumerate(self._plan.variants) if truth(tree(variant.when), shape)), None)

    def _all(self, asked: Asked, cell: Cell) -> bool:
        for node, holds in asked.way.wants:
            key = id(node), id(cell)
            if key not in self._known:
                self._known[key] = truth(node, cell)
                self._kept.append(node)
            if self._known[key] not in _enough(asked, holds):
                return False
        return True


def _enough(asked: Asked, holds: bool) -> tuple[bool | None, ...]:
    """What a condition may be in a shape that takes the way: of threads, some may do so and others not."""
    return (holds, None) if asked.placed else (holds,)
