"""Looking for a shape that a contract allows and in which conditions come out as asked.

Shapes are searched as cells, from the cheapest on. What no shape can meet is proved so by spans; what the search leaves
open is told from both.
"""

import ast
import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kerneltrial.inputs.boundary import cost
from kerneltrial.inputs.contracts import array_shapes
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.spans import Cell, Span, all_of, span_of, truth
from kerneltrial.records.contract import Contract, Range

CELLS: Final = 1024  # of one search
_CHEAPER: Final = 64  # after a shape was found, for a cheaper one
_FACTOR: Final = 16  # remainders by larger primes are told apart by size alone

Order = Literal["cheapest", "largest", "deepest"]
Wants = Sequence[tuple[ast.expr, bool]]  # conditions, and how each is to come out


@dataclass(frozen=True)
class Found:
    """The cheapest shape that was found, or None; `settled` where there is none for certain, or one was found.

    `cells`: how many were looked at.
    """

    dimensions: dict[str, int] | None
    settled: bool
    cells: int = 0


def find(contract: Contract, wants: Wants, cells: int = CELLS, *, order: Order = "cheapest") -> Found:
    """Look for an allowed shape in which all of `wants` come out, in at most so many cells.

    Cells are taken from the cheapest on until no shape can be cheaper, or none was in many cells; or else from the
    largest or the smallest cell on, and the first shape is returned, made small if it was not to be large.
    """
    asked = _apart(wants)
    if asked is None:
        return Found(None, settled=True)
    turn = itertools.count()
    rank = _RANKS[order] if order != "cheapest" else _cheapest(contract)
    whole = domain(contract)
    heap = [(rank(whole), next(turn), whole)] if _status(asked, whole) is not False else []
    best, least, looked = None, math.inf, 0
    while heap and cells > 0 and heap[0][0] < least:
        cells, looked = cells - 1, looked + 1
        cell = heapq.heappop(heap)[2]
        for corner in _corners(asked, cell):
            price = rank(point(corner)) if _status(asked, point(corner)) and exists(contract, corner) else math.inf
            if price < least:
                cells = min(cells, _CHEAPER)
                best, least = corner, price if order == "cheapest" else -math.inf
        for part in _parts(asked, cell):
            if _status(asked, part) is not False:
                heapq.heappush(heap, (rank(part), next(turn), part))
    if best is not None and order != "largest":
        best = _lowered(contract, asked, best)
    return Found(best, settled=best is not None or not heap, cells=looked)


def _lowered(contract: Contract, wants: Wants, shape: dict[str, int]) -> dict[str, int]:
    """The shape with each dimension in turn as small as bisection makes it: exact where more is always allowed."""
    found = dict(shape)
    for name, span in domain(contract).items():
        low, high = 0, (found[name] - span.low) // max(span.step, 1)
        while low < high:
            middle = (low + high) // 2
            tried = {**found, name: span.low + middle * span.step}
            if _status(wants, point(tried)) and exists(contract, tried):
                found, high = tried, middle
            else:
                low = middle + 1
    return found


def _apart(wants: Wants) -> Wants | None:
    """The same conditions in their parts, each once; None where one is to be both true and false."""
    found: dict[str, tuple[ast.expr, bool]] = {}
    left = list(reversed(wants))
    while left:
        node, want = left.pop()
        match node:
            case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is want:
                left += [(value, want) for value in values]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                left.append((operand, not want))
            case _ if found.setdefault(ast.unparse(node), (node, want))[1] is not want:
                return None
    return tuple(found.values())


def domain(contract: Contract) -> dict[str, Span]:
    """All shapes that a contract allows, as one cell."""
    return {name: _whole(span) for name, span in contract.dimensions.items()}


def _whole(span: Range) -> Span:
    step = span.multiple_of
    low, high = -(-span.minimum // step) * step, span.maximum // step * step
    return Span(low, high, step if low < high else 0)


def _cheapest(contract: Contract) -> Callable[[dict[str, Span]], float]:
    def rank(cell: dict[str, Span]) -> float:
        try:
            return cost(contract, _low(cell))
        except InputProblem:
            return math.inf

    return rank


_RANKS: Final[Mapping[str, Callable[[dict[str, Span]], float]]] = {
    "largest": lambda cell: -sum(math.log(max(span.high, 1)) for span in cell.values()),
    "deepest": lambda cell: sum(math.log(_count(span)) for span in cell.values()),  # the last part of a part first
}


def _low(cell: Mapping[str, Span]) -> dict[str, int]:
    return {name: span.low for name, span in cell.items()}


def _corners(wants: Wants, cell: dict[str, Span]) -> tuple[dict[str, int], dict[str, int]]:
    """The smallest shape of a cell, and the largest as far as what is open hangs on it."""
    open_names = {name for leaf in _open(wants, cell) for name in names_in(leaf)}
    low = _low(cell)
    return low, {name: span.high if name in open_names else low[name] for name, span in cell.items()}


def _open(wants: Wants, cell: Cell) -> list[ast.expr]:
    return [leaf for node, _ in wants for leaf in leaves_of(node) if truth(leaf, cell) is None]


def point(dimensions: Mapping[str, int]) -> dict[str, Span]:
    """One shape as a cell."""
    return {name: Span(size, size, 0) for name, size in dimensions.items()}


def _status(wants: Wants, cell: Cell) -> bool | None:
    known = (truth(node, cell) for node, _ in wants)
    return all_of([None if k is None else k is want for k, (_, want) in zip(known, wants, strict=True)])


def exists(contract: Contract, dimensions: Mapping[str, int]) -> bool:
    """Whether the contract's arrays are of a usable size in this shape."""
    try:
        array_shapes(contract, dimensions)
    except InputProblem:
        return False
    return True


def _parts(wants: Wants, cell: dict[str, Span]) -> list[dict[str, Span]]:
    """A cell in parts: by remainders where one is open, else halves of the dimension that has the most values."""
    leaves = _open(wants, cell)
    divided = (node for leaf in leaves for node in ast.walk(leaf) if isinstance(node, ast.BinOp))
    for node in divided:
        split = _by_remainder(node, cell) if isinstance(node.op, ast.Mod) else None
        if split is not None:
            return split
    names = next(
        filter(None, ([n for n in names_in(leaf) if n in cell and cell[n].step] for leaf in leaves)), list(cell)
    )
    name = max(names, key=lambda each: _count(cell[each]))
    return _halves(cell, name) if cell[name].step else []


def _count(span: Span) -> int:
    return (span.high - span.low) // span.step + 1 if span.step else 1


def _by_remainder(node: ast.BinOp, cell: dict[str, Span]) -> list[dict[str, Span]] | None:
    divisor = span_of(node.right, cell)
    if divisor.low != divisor.high or divisor.low < 1:
        return None
    for name in names_in(node.left):
        span = cell.get(name, Span(0, 0, 0))
        rest = divisor.low // math.gcd(divisor.low, span.step) if span.step else 1
        factor = next((prime for prime in range(2, _FACTOR) if rest % prime == 0), 0)
        if factor and _count(span) > factor:
            return [{**cell, name: _every(span, start, factor)} for start in range(factor)]
    return None


def _every(span: Span, start: int, factor: int) -> Span:
    low, step = span.low + start * span.step, span.step * factor
    high = low + (span.high - low) // step * step
    return Span(low, high, step if low < high else 0)


def _halves(cell: dict[str, Span], name: str) -> list[dict[str, Span]]:
    span = cell[name]
    middle = span.low + (_count(span) // 2 - 1) * span.step
    return [
        {**cell, name: part} for part in (_from(span.low, middle, span), _from(middle + span.step, span.high, span))
    ]


def _from(low: int, high: int, span: Span) -> Span:
    return Span(low, high, span.step if low < high else 0)


def leaves_of(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.BoolOp(values=values):
            for value in values:
                yield from leaves_of(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from leaves_of(operand)
        case _:
            yield node


def names_in(node: ast.AST) -> list[str]:
    """The dimensions in a node, in order; functions among them do no harm, since no cell has them."""
    return list(dict.fromkeys(part.id for part in ast.walk(node) if isinstance(part, ast.Name)))
