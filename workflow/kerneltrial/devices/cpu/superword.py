"""Multiply-adds of f32 that stand side by side, four of which the host does at once.

A thread that makes a tile of a product in its registers executes, for each of its rows, multiply-adds that share a
factor. Four of them are one instruction on vectors of the host, lane by lane the same operation on the same bits, so
nothing is reordered or rounded otherwise. Registers that are used so in more than one basic block lie together.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kerneltrial.devices.cpu.lower_float import fused_multiply_add
from kerneltrial.devices.cpu.syntax import WIDTHS, Function, Register, Vector

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.blocks import Block, Step

LANES = 4
Lanes = tuple[int, ...]
"""Registers, one a lane."""


@dataclass(frozen=True)
class Superword:
    """results = factor * factors + addends, lane by lane."""

    factor: int
    factors: Lanes
    addends: Lanes
    results: Lanes

    @property
    def registers(self) -> Lanes:
        """All that it reads and writes."""
        return (self.factor, *self.factors, *self.addends, *self.results)


@dataclass
class Superwords:
    """Those of a function by the identity of their first instruction; that of the other three stands in `covered`.

    `vectors` are all that is read or written as one. Those `together` outlive a basic block: no two share a register.
    """

    first: dict[int, Superword] = field(default_factory=dict)
    covered: set[int] = field(default_factory=set)
    vectors: set[Lanes] = field(default_factory=set)
    together: list[Lanes] = field(default_factory=list)


def superwords(function: Function, blocks: list[Block], local: frozenset[int]) -> Superwords:
    """What is worth it: factors that one load brings, or that two superwords of a block share.

    `local` is that of `flow.Flow`.
    """
    found = Superwords()
    words = frozenset(n for n, type_ in enumerate(function.registers) if WIDTHS[type_] == 32)
    loaded = {lanes for block in blocks for step in block.steps if (lanes := _loaded(step))}
    for block in blocks:
        candidates = [(at, word) for at, word in _candidates(block) if words.issuperset(word.registers)]
        shared = Counter(word.factors for _, word in candidates)
        for place, word in candidates:
            if word.factors in loaded or shared[word.factors] > 1:
                covered = [id(step.instruction) for step in block.steps[place : place + LANES]]
                found.first[covered[0]] = word
                found.covered.update(covered[1:])
                found.vectors |= {word.factors, word.addends, word.results}
    _lay_together(found, local)
    return found


def _lay_together(found: Superwords, local: frozenset[int]) -> None:
    taken: set[int] = set()
    for word in found.first.values():
        for lanes in (word.addends, word.results, word.factors):
            if taken.isdisjoint(lanes) and local.isdisjoint(lanes):
                found.together.append(lanes)
                taken.update(lanes)


def _candidates(block: Block) -> list[tuple[int, Superword]]:
    """Superwords with the places of their first steps, none of which overlap."""
    found = []
    place = 0
    while place + LANES <= len(block.steps):
        word = _word(block.steps[place : place + LANES])
        if word is not None:
            found.append((place, word))
        place += LANES if word else 1
    return found


def _word(steps: list[Step]) -> Superword | None:
    rows = [_registers(step) for step in steps]
    if not all(rows):
        return None
    results, addends = (tuple(row[place] for row in rows) for place in (0, 3))
    common = set.intersection(*({row[1], row[2]} for row in rows))
    if not common:
        return None
    factor = min(common)
    factors = tuple(row[2] if row[1] == factor else row[1] for row in rows)
    if any(len(set(lanes)) < LANES for lanes in (results, factors, addends)):
        return None
    # all is read before any is written
    if set(results) & {factor, *factors} or any(r in addends and addends.index(r) != n for n, r in enumerate(results)):
        return None
    return Superword(factor, factors, addends, results)


def _registers(step: Step) -> Lanes:
    """Result, factors and addend of a plain fused multiply-add of registers; empty for all else."""
    instruction = step.instruction
    if instruction.opcode != "fma.rn.f32" or instruction.guard or step.match.form.lower is not fused_multiply_add:
        return ()
    found = tuple(operand.index for operand in instruction.operands if isinstance(operand, Register))
    return found if len(found) == 4 else ()


def _loaded(step: Step) -> Lanes:
    """The registers that a load of four words brings."""
    match, target = step.match, step.instruction.operands[:1]
    if match.form.head != "ld" or match.fields.get("v") != ".v4" or not isinstance(target[0], Vector):
        return ()
    found = tuple(item.index for item in target[0].items if isinstance(item, Register))
    return found if len(set(found)) == LANES else ()
