"""Basic blocks, liveness of registers, and which registers hold only results of float arithmetic."""

from dataclasses import dataclass, field

from kerneltrial.devices.cpu.forms import Match
from kerneltrial.devices.cpu.refusals import unreadable, unsupported_feature
from kerneltrial.devices.cpu.syntax import (
    WIDTHS,
    Function,
    Group,
    Immediate,
    Instruction,
    Label,
    Memory,
    Name,
    Not,
    Operand,
    Pair,
    Register,
    Vector,
)
from kerneltrial.devices.cpu.table import find, resolve

MAX_LIVENESS_BITS = 1 << 31
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


@dataclass
class Flow:
    """The blocks of a function in order; `pure` holds registers whose every value is an f32 arithmetic result.

    `carry` is the predicate register that stands for the carry flag, -1 where the function does not use it.
    """

    blocks: list[Block]
    pure: frozenset[int]
    carry: int = -1

    def successors(self, block: Block) -> list[Block]:
        found = [self.blocks[block.target]] if block.target >= 0 else []
        if block.falls_through and block.index + 1 < len(self.blocks):
            found.append(self.blocks[block.index + 1])
        return found


def analyse(function: Function) -> Flow:
    """Blocks with liveness. Raises `Refused` for instructions that are not in the table, and for broken branches."""
    carry = _carry(function)
    blocks, places = _split(function, carry)
    if len(blocks) * len(function.registers) > MAX_LIVENESS_BITS:
        raise unsupported_feature(f"{len(blocks)} basic blocks with {len(function.registers)} registers")
    for block in blocks:
        if block.ends == "bra":
            target = block.last.instruction.operands[0]
            if not isinstance(target, Name) or target.text not in places:
                raise unreadable("a branch to a label that is not there")
            block.target = places[target.text]
    flow = Flow(blocks, _pure(function, blocks), carry)
    _liveness(flow)
    return flow


def _carry(function: Function) -> int:
    """A register for the carry flag, where an instruction uses it: so it is kept like any other."""
    matches = (find(s.opcode) for s in function.code if isinstance(s, Instruction))
    if not any(match and match.form.carry for match in matches):
        return -1
    function.registers.append("pred")
    return len(function.registers) - 1


def _split(function: Function, carry: int) -> tuple[list[Block], dict[str, int]]:
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
        step = _step(statement, carry)
        block = blocks[-1]
        block.steps.append(step)
        head = statement.opcode.split(".", 1)[0]
        if head in _ENDS or step.match.form.sync:
            block.ends = "sync" if step.match.form.sync else "ret" if head == "exit" else head
            blocks.append(Block(len(blocks)))
    return blocks, places


def _step(instruction: Instruction, carry: int) -> Step:
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


def _liveness(flow: Flow) -> None:
    uses: list[int] = []
    kills: list[int] = []
    for block in flow.blocks:
        use = kill = 0
        for step in block.steps:
            for register in step.reads:
                use |= (1 << register) & ~kill
            for register in step.writes:
                kill |= 1 << register
        uses.append(use)
        kills.append(kill)
    changed = True
    while changed:
        changed = False
        for block in reversed(flow.blocks):
            out = 0
            for successor in flow.successors(block):
                out |= successor.live_in
            live = uses[block.index] | (out & ~kills[block.index])
            if live != block.live_in:
                block.live_in = live
                changed = True


def bits(mask: int) -> list[int]:
    """The positions of the bits that are set, in rising order."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _pure(function: Function, blocks: list[Block]) -> frozenset[int]:
    """Registers that only f32 arithmetic and copies of such results write.

    A NaN in them has whatever payload the host made; it becomes the canonical one where its bits are looked at.
    """
    written: dict[int, list[Step]] = {}
    for block in blocks:
        for step in block.steps:
            for register in step.writes:
                written.setdefault(register, []).append(step)
    pure = {register for register in written if WIDTHS[function.registers[register]] == 32}
    changed = True
    while changed:
        changed = False
        for register in list(pure):
            if not all(_keeps(step, pure) for step in written[register]):
                pure.discard(register)
                changed = True
    return frozenset(r for r in pure if any(s.match.form.nan for s in written[r]))


def _keeps(step: Step, pure: set[int]) -> bool:
    if step.match.form.nan:
        return True
    if not step.match.form.copies:
        return False
    for spec, operand in zip(step.match.form.specs, step.instruction.operands, strict=True):
        if spec.startswith("=") or spec == "pred":
            continue
        if isinstance(operand, Register):
            if operand.index not in pure:
                return False
        elif not _harmless(operand):
            return False
    return True


def _harmless(operand: Operand) -> bool:
    """A constant that is no NaN as an f32, or the canonical one."""
    if not isinstance(operand, Immediate) or operand.kind not in ("f32", "int"):
        return False
    value = int(operand.value)
    if operand.kind == "int" and not 0 <= value < 1 << 31:
        return False
    return (value & 0x7FFFFFFF) <= 0x7F800000 or value == 0x7FFFFFFF
