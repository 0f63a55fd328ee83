"""Ways through a kernel that hang on sizes alone: conditions that lead to a branch, a guard or a choice.

A condition counts together with those that it lies behind: of `if (m == 5) if (n == 7)` the second alone says little.
What lies behind what is told by dominators (`blocks`).
"""

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kerneltrial.judge.arithmetic import WIDTHS, number
from kerneltrial.judge.blocks import ENDS, Block, blocks_of, dominators, order
from kerneltrial.judge.floats import turns
from kerneltrial.judge.ptx import Statement
from kerneltrial.judge.sizes import Sizes

Wants = tuple[tuple[ast.expr, bool], ...]
_BEHIND = 24  # conditions that lead to a place; a kernel can have thousands, one behind the other
_FEW = 3  # values of a number by which a kernel can choose without a predicate


@dataclass(frozen=True)
class Way:
    """Conditions, each with how it is to come out, and the source's line (0: unknown) where the last one stands."""

    wants: Wants
    source: int


def ways(body: Sequence[Statement], sizes: Sizes, made: Mapping[str, bool]) -> Iterator[Way]:
    """Each condition on sizes in an entry's body, both ways, behind those that lead there; some may be the same.

    `made`: registers that come from sizes alone, and whether a size is in them. Where several instructions write one,
    each is taken in turn, behind what leads to it.
    """
    blocks = blocks_of(body)
    above = dominators(blocks)
    behind: dict[int, Wants] = {}
    for place in order(blocks):
        led = _led(blocks, place, sizes)
        behind[place] = (*(behind[above[place]] if place else ()), *((led,) if led else ()))[-_BEHIND:]
    places = {id(statement): place for place, block in enumerate(blocks) for statement in block.statements}
    for place in behind:
        for statement in blocks[place].statements:
            for register in _asked(statement):
                for leading, condition in _conditions(register, sizes, made, lambda s: behind.get(places[id(s)], ())):
                    wants = (*behind[place], *leading)
                    yield from (Way((*wants, (condition, holds)), statement.source) for holds in (True, False))
                    yield from (Way((*wants, part), statement.source) for part in _any(condition))
            for equal in _numbers(statement, sizes, made):
                yield Way((*behind[place], (equal, True)), statement.source)


def _conditions(
    register: str, sizes: Sizes, made: Collection[str], behind: Callable[[Statement], Wants]
) -> Iterator[tuple[Wants, ast.expr]]:
    """What a predicate is, and under which conditions it is so."""
    found = sizes.of(register)
    if found is None and register in made:
        for other, choice in sizes.chosen(register):
            found = other.of(register)
            if found is not None and not isinstance(found, ast.Constant):
                yield tuple(want for one in choice for want in behind(one)), found
    elif found is not None and not isinstance(found, ast.Constant):
        yield (), found


def _any(condition: ast.expr) -> Iterator[tuple[ast.expr, bool]]:
    """Parts of which one alone makes a condition come out so: in each a kernel can do what it does in no other."""
    left: list[tuple[ast.expr, bool, bool]] = [(condition, holds, False) for holds in (True, False)]
    while left:
        node, holds, part = left.pop()
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                left.append((operand, not holds, part))
            case ast.BoolOp(op=op, values=values):
                alone = isinstance(op, ast.Or) is holds
                left += [(value, holds, part or alone) for value in values]
            case _ if part:
                yield node, holds


def _asked(statement: Statement) -> Iterator[str]:
    """Predicates that decide something in a statement."""
    if statement.guard:
        yield statement.guard
    if statement.opcode.startswith("selp.") and len(statement.parts) == 4:
        yield from statement.operands[3]


def _numbers(statement: Statement, sizes: Sizes, made: Mapping[str, bool]) -> Iterator[ast.expr]:
    """That a number made of sizes is each of the few that it can be, since what is reckoned with it chooses as a
    predicate does; and of one that becomes a float that it is zero, since all products and quotients turn on that."""
    name, *modifiers = statement.opcode.split(".")
    if name in ("selp", "setp") or modifiers[-1:] == ["pred"]:
        return
    yield from turns(statement, sizes) or ()
    to_float = name == "cvt" and [kind in WIDTHS for kind in modifiers[-2:]] == [False, True]
    named = set().union(*statement.operands[1:]) if to_float else statement.written
    for register in sorted(register for register in named if made.get(register)):
        node = sizes.of(register)
        if node is None or isinstance(node, ast.Constant):
            continue
        low, high, step = sizes.span(node)
        values = range(low, high + 1, step or 1)  # as long as 64 bits can make it: it has no len
        few = 0 < (high - low) // (step or 1) < _FEW
        for value in values if few else [0] if to_float and 0 in values else []:
            yield ast.Compare(node, [ast.Eq()], [number(value)])


def _led(blocks: list[Block], place: int, sizes: Sizes) -> tuple[ast.expr, bool] | None:
    """The condition of the one branch that leads to a block, where it has an expression."""
    if place == 0 or len(blocks[place].before) != 1:
        return None
    before = blocks[blocks[place].before[0]]
    if not before.statements:
        return None  # where tables of labels lead through
    last = before.statements[-1]
    kind = last.opcode.split(".")[0]
    if kind not in ENDS or not last.guard or len(before.following) != (2 if kind == "bra" else 1):
        return None
    condition = sizes.of(last.guard)
    taken = kind == "bra" and before.following[0] == place  # the branch's target comes first
    return None if condition is None or isinstance(condition, ast.Constant) else (condition, taken is not last.negated)
