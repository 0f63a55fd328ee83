"""Accesses to shared memory of one basic block that one check covers: the same register, other offsets.

All of them are executed where the first is, unless a fault comes before. So where the range that they span lies in
shared memory, each does; where it does not, one of them is at fault: the range's start tells which.
"""

from dataclasses import dataclass, field

from kerneltrial.devices.cpu.blocks import Block, Step
from kerneltrial.devices.cpu.syntax import WIDTHS, Memory, Register

_SHARED = (".shared", ".shared::cta")


@dataclass
class Group:
    """Accesses of `size` bytes at offsets `low` to `high` from a register; `members` are (offset, site) in order."""

    size: int
    low: int
    high: int
    site: int = -1
    members: list[tuple[int, int]] = field(default_factory=list)

    @property
    def span(self) -> int:
        """From the first access to the last, in bytes."""
        return self.high - self.low

    def culprit(self, start: int, limit: int) -> tuple[int, int]:
        """The site and the address of the first access that fails, when the lowest one is at `start`."""
        for offset, site in self.members:
            address = start + offset - self.low
            if address % self.size or not 0 <= address <= limit - self.size:
                return site, address
        raise AssertionError("a group's range fails only where an access of it does")


def shared_groups(block: Block) -> dict[int, Group]:
    """Groups of two and more accesses, by the identity of each instruction."""
    open_: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    closed: list[tuple[int, list[tuple[int, int]]]] = []
    for step in block.steps:
        found = _access(step)
        if found is not None:
            register, offset, size = found
            open_.setdefault((register, size, offset % size), []).append((id(step.instruction), offset))
        for key in [key for key in open_ if key[0] in step.writes]:
            closed.append((key[1], open_.pop(key)))
    closed += [(key[1], accesses) for key, accesses in open_.items()]
    groups: dict[int, Group] = {}
    for size, accesses in closed:
        if len(accesses) > 1:
            offsets = [offset for _, offset in accesses]
            group = Group(size, min(offsets), max(offsets))
            groups |= dict.fromkeys((identity for identity, _ in accesses), group)
    return groups


def _access(step: Step) -> tuple[int, int, int] | None:
    """Register, offset and size of a plain access to shared memory that is executed whenever its block is."""
    fields, instruction = step.match.fields, step.instruction
    if step.match.form.head not in ("ld", "st") or fields.get("space") not in _SHARED or instruction.guard:
        return None
    memory = next(operand for operand in instruction.operands if isinstance(operand, Memory))
    if not isinstance(memory.place, Register):
        return None
    lanes = int(fields["v"][2:]) if fields.get("v") else 1
    return memory.place.index, memory.offset, WIDTHS[fields["t"]] // 8 * lanes
