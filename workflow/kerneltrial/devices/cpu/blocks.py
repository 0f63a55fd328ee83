"""Basic blocks: instructions with their entries of the table, and the registers that they write and read."""

from dataclasses import dataclass, field

from kerneltrial.devices.cpu.forms import Match
from kerneltrial.devices.cpu.refusals import unreadable
from kerneltrial.devices.cpu.syntax import (
    Function,
    Group,
    Instruction,
    Label,
    Memory,
    Not,
    Operand,
    Pair,
    Register,
    Vector,
)
from kerneltrial.devices.cpu.table import resolve

_ENDS = frozenset({"bra", "ret", "exit", "trap"})


@dataclass
class Step:
    """An instruction with its entry of the table, and the registers that it writes and reads."""

    instruction: Instruction
    match: Match
    writes: tuple[int, ...]
    reads: tuple[int, ...]


@dataclass
class Block:
    """A basic block. `ends` is fall, bra, ret, trap or sync; `target` is where a branch goes."""

    index: int
    steps: list[Step] = field(default_factory=list)
    ends: str = "fall"
    target: int = -1
    live_in: int = 0

    @property
    def last(self) -> Step:
        return self.steps[-1]

    @property
    def falls_through(self) -> bool:
        return self.ends in ("fall", "sync") or self.last.instruction.guard is not None


def split(function: Function, carry: int) -> tuple[list[Block], dict[str, int]]:
    """The blocks, and their places by label; `carry` is the register of the carry flag, or -1."""
    blocks = [Block(0)]
    places: dict[str, int] = {}

    def start() -> None:
        if blocks[-1].steps or blocks[-1].ends != "fall":
            blocks.append(Block(len(blocks)))

    for statement in function.code:
        if isinstance(statement, Label):
            start()
            if statement.key in places:
                raise unreadable("a label that stands twice")
            places[statement.key] = blocks[-1].index
            continue
        step = step_of(statement, carry)
        block = blocks[-1]
        block.steps.append(step)
        head = statement.opcode.split(".", 1)[0]
        if head in _ENDS or step.match.form.sync:
            block.ends = "sync" if step.match.form.sync else "ret" if head == "exit" else head
            blocks.append(Block(len(blocks)))
    return blocks, places


def step_of(instruction: Instruction, carry: int = -1) -> Step:
    """An instruction with its entry; raises `Refused` where it is not in the table."""
    match = resolve(instruction)
    writes: list[int] = []
    reads: list[int] = []
    for spec, operand in zip(match.form.specs, instruction.operands, strict=False):
        _registers(operand, writes if spec.startswith("=") else reads, reads)
    reads += [carry] * ("r" in match.form.carry)
    writes += [carry] * ("w" in match.form.carry)
    if instruction.guard is not None:
        # a guarded write may leave the old value in place, so that value is read
        reads.append(instruction.guard.index)
        reads.extend(writes)
    return Step(instruction, match, tuple(writes), tuple(reads))


def _registers(operand: Operand, into: list[int], reads: list[int]) -> None:
    match operand:
        case Register(index):
            into.append(index)
        case Not(register):
            into.append(register.index)
        case Memory(Register(index), _):
            reads.append(index)
        case Vector(items) | Group(items):
            for item in items:
                _registers(item, into, reads)
        case Pair(first, second):
            _registers(first, into, reads)
            _registers(second, into, reads)
