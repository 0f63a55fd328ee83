"""Ways through a kernel that hang on sizes alone: conditions that lead to a branch, a guard or a choice.

A condition counts together with those that it lies behind: of `if (m == 5) if (n == 7)` the second alone says little.
What lies behind what is told by dominators, after Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".
"""

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kerneltrial.judge.arithmetic import WIDTHS, number
from kerneltrial.judge.ptx import Statement
from kerneltrial.judge.sizes import Sizes

Wants = tuple[tuple[ast.expr, bool], ...]
_BEHIND = 24  # conditions that lead to a place; a kernel can have thousands, one behind the other
_FEW = 3  # values of a number by which a kernel can choose without a predicate
_ENDS = frozenset({"bra", "ret", "exit", "trap", "brx"})


@dataclass(frozen=True)
class Way:
    """Conditions, each with how it is to come out, and the source's line (0: unknown) where the last one stands."""

    wants: Wants
    source: int


@dataclass
class _Block:
    statements: list[Statement]
    following: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)


def ways(body: Sequence[Statement], sizes: Sizes, made: Mapping[str, bool]) -> Iterator[Way]:
    """Each condition on sizes in an entry's body, both ways, behind those that lead there; some may be the same.

    `made`: registers that come from sizes alone, and whether a size is in them. Where several instructions write one,
    each is taken in turn, behind what leads to it.
    """
    blocks = _blocks(body)
    above = _dominators(blocks)
    behind: dict[int, Wants] = {}
    for place in _order(blocks):
        led = _led(blocks, place, sizes)
        behind[place] = (*(behind[above[place]] if place else ()), *((led,) if led else ()))[-_BEHIND:]
    places = {id(statement): place for place, block in enumerate(blocks) for statement in block.statements}
    for place in behind:
        for statement in blocks[place].statements:
            for register in _asked(statement):
                for leading, condition in _conditions(register, sizes, made, lambda s: behind.get(places[id(s)], ())):
                    wants = (*behind[place], *leading)
                    yield from (Way((*wants, (condition, holds)), statement.source) for holds in (True, False))
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


def _blocks(body: Sequence[Statement]) -> list[_Block]:
    blocks: list[_Block] = [_Block([])]
    named: dict[str, int] = {}
    for statement in body:
        last = blocks[-1].statements
        if last and (statement.labels or last[-1].opcode.split(".")[0] in _ENDS):
            blocks.append(_Block([]))
        named.update(dict.fromkeys(statement.labels, len(blocks) - 1))
        blocks[-1].statements.append(statement)
    anywhere = sorted(set(named.values()))
    for place, block in enumerate(blocks):
        last_one = block.statements[-1] if block.statements else None
        for target in _targets(last_one, named, anywhere, place + 1 if place + 1 < len(blocks) else -1):
            if target not in block.following:
                block.following.append(target)
                blocks[target].before.append(place)
    return blocks


def _targets(last: Statement | None, named: dict[str, int], anywhere: list[int], after: int) -> Iterator[int]:
    kind = last.opcode.split(".")[0] if last is not None else ""
    if kind == "brx":
        yield from anywhere
    elif kind == "bra" and last is not None:
        yield from (named[name] for part in last.operands for name in part if name in named)
    if after >= 0 and (kind not in _ENDS or (last is not None and last.guard)):
        yield after


def _order(blocks: list[_Block]) -> list[int]:
    """Blocks that can be reached, in reverse postorder."""
    found: list[int] = []
    seen = {0}
    stack = [(0, iter(blocks[0].following))]
    while stack:
        place, left = stack[-1]
        target = next((each for each in left if each not in seen), None)
        if target is None:
            found.append(place)
            stack.pop()
        else:
            seen.add(target)
            stack.append((target, iter(blocks[target].following)))
    return found[::-1]


def _dominators(blocks: list[_Block]) -> dict[int, int]:
    order = _order(blocks)
    rank = {place: number for number, place in enumerate(order)}
    above = {0: 0}
    changed = True
    while changed:
        changed = False
        for place in order[1:]:
            known = [before for before in blocks[place].before if before in above]
            new = known[0]
            for other in known[1:]:
                while new != other:
                    while rank[new] > rank[other]:
                        new = above[new]
                    while rank[other] > rank[new]:
                        other = above[other]
            if above.get(place) != new:
                above[place] = new
                changed = True
    return above


def _led(blocks: list[_Block], place: int, sizes: Sizes) -> tuple[ast.expr, bool] | None:
    """The condition of the one branch that leads to a block, where it has an expression."""
    if place == 0 or len(blocks[place].before) != 1:
        return None
    before = blocks[blocks[place].before[0]]
    last = before.statements[-1]
    kind = last.opcode.split(".")[0]
    if kind not in _ENDS or not last.guard or len(before.following) != (2 if kind == "bra" else 1):
        return None
    condition = sizes.of(last.guard)
    taken = kind == "bra" and before.following[0] == place  # the branch's target comes first
    return None if condition is None or isinstance(condition, ast.Constant) else (condition, taken is not last.negated)
