"""Blocks of a kernel's code, and which of them every way to another goes through.

A kernel is hostile text, read in the judge's own process: all of this takes time and memory in proportion to the text,
but for a logarithm. So blocks that jump through a table of labels (`brx.idx`) share one empty block behind all of them
that leads to every label; and dominators are those of Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in
a Flowgraph", since simpler ways take the square of thirty thousand branches to one place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from kerneltrial.judge.ptx import Statement

ENDS: Final = frozenset({"bra", "ret", "exit", "trap", "brx"})


@dataclass
class Block:
    """Statements that run one after the other, and the places of the blocks that follow it or stand before it."""

    statements: list[Statement]
    following: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)


def blocks_of(body: Sequence[Statement]) -> list[Block]:
    """An entry's blocks, the first one first; the last may be the empty one of tables."""
    blocks: list[Block] = [Block([])]
    named: dict[str, int] = {}
    for statement in body:
        last = blocks[-1].statements
        if last and (statement.labels or last[-1].opcode.split(".")[0] in ENDS):
            blocks.append(Block([]))
        named.update(dict.fromkeys(statement.labels, len(blocks) - 1))
        blocks[-1].statements.append(statement)
    code = len(blocks)
    if any(block.statements[-1].opcode.startswith("brx") for block in blocks if block.statements):
        blocks.append(Block([], following=sorted(set(named.values()))))
    for place, block in enumerate(blocks[:code]):
        last_one = block.statements[-1] if block.statements else None
        block.following = list(dict.fromkeys(_targets(last_one, named, code, place + 1)))
    for place, block in enumerate(blocks):
        for target in block.following:
            blocks[target].before.append(place)
    return blocks


def _targets(last: Statement | None, named: dict[str, int], code: int, after: int) -> Iterator[int]:
    """Where a block goes on; `code` is how many blocks have code, and the place of the one that has none."""
    kind = last.opcode.split(".")[0] if last is not None else ""
    if kind == "brx":
        yield code
    elif kind == "bra" and last is not None:
        yield from (named[name] for part in last.operands for name in part if name in named)
    if after < code and (kind not in ENDS or (last is not None and last.guard)):
        yield after


def order(blocks: Sequence[Block]) -> list[int]:
    """Blocks that can be reached, in reverse postorder: each behind those that it is dominated by."""
    return _walk(blocks)[1][::-1]


def _walk(blocks: Sequence[Block]) -> tuple[dict[int, int], list[int]]:
    """A search from the first block, deep before wide: each block that it meets, with the one that it was met from,
    in the order in which they were met; and the blocks in the order in which they were left."""
    met = {0: 0}
    done: list[int] = []
    stack = [(0, iter(blocks[0].following))]
    while stack:
        place, left = stack[-1]
        target = next((each for each in left if each not in met), None)
        if target is None:
            done.append(place)
            stack.pop()
        else:
            met[target] = place
            stack.append((target, iter(blocks[target].following)))
    return met, done


def dominators(blocks: Sequence[Block]) -> dict[int, int]:
    """The nearest block that every way to a block goes through; of the first block, itself."""
    met, _ = _walk(blocks)
    forest = _Forest(list(met))
    above = {0: 0}
    waiting: dict[int, list[int]] = {place: [] for place in met}
    for place in reversed(forest.places[1:]):
        for before in blocks[place].before:
            if before in met:
                forest.lower(place, forest.least(before))
        waiting[forest.places[forest.rank[place]]].append(place)
        forest.link(met[place], place)
        for other in waiting[met[place]]:
            lowest = forest.least(other)
            above[other] = lowest if forest.rank[lowest] < forest.rank[other] else met[place]
        waiting[met[place]] = []
    for place in forest.places[1:]:
        if above[place] != forest.places[forest.rank[place]]:
            above[place] = above[above[place]]
    return above


class _Forest:
    """Parts of the search's tree that were gone through, from the last block met on.

    `rank` is a block's semidominator, as its number among `places`: the first block from which a way leads to it
    through blocks alone that were met later.
    """

    def __init__(self, places: list[int]) -> None:
        self.places = places
        self.rank = {place: number for number, place in enumerate(places)}
        self._over: dict[int, int] = {}
        self._least = {place: place for place in places}

    def link(self, parent: int, place: int) -> None:
        """Hang a block under the one that it was met from."""
        self._over[place] = parent

    def lower(self, place: int, other: int) -> None:
        """Give a block the rank of another one where that is lower."""
        self.rank[place] = min(self.rank[place], self.rank[other])

    def least(self, place: int) -> int:
        """The block of lowest rank from one up to below the root of its tree; paths are made short on the way."""
        path: list[int] = []
        here = place
        while here in self._over and self._over[here] in self._over:
            path.append(here)
            here = self._over[here]
        for lower in reversed(path):
            over = self._over[lower]
            if self.rank[self._least[over]] < self.rank[self._least[lower]]:
                self._least[lower] = self._least[over]
            self._over[lower] = self._over[over]
        return self._least[place]
