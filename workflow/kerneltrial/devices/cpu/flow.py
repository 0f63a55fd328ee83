"""Basic blocks, liveness of registers, and which registers hold only results of float arithmetic."""

from collections import Counter
from dataclasses import dataclass, field

from kerneltrial.devices.cpu.blocks import Block, Step, split
from kerneltrial.devices.cpu.contraction import contract
from kerneltrial.devices.cpu.refusals import unreadable, unsupported_feature
from kerneltrial.devices.cpu.superword import Superwords
from kerneltrial.devices.cpu.syntax import WIDTHS, Function, Immediate, Instruction, Name, Operand, Register
from kerneltrial.devices.cpu.table import find

MAX_LIVENESS_BITS = 1 << 31


@dataclass
class Flow:
    """The blocks of a function in order; `pure` holds registers whose every value is an f32 arithmetic result.

    `local` holds registers that are written once and read only behind that, in the same block: plain values of LLVM.
    `carry` is the predicate register that stands for the carry flag, -1 where the function does not use it. `spins` are
    the blocks that end in a branch back over a look at what other threads may write (cooperative launches alone).
    `superwords` are found where they are worth their while (see `kernel`).
    """

    blocks: list[Block]
    pure: frozenset[int]
    local: frozenset[int] = frozenset()
    carry: int = -1
    spins: frozenset[int] = frozenset()
    superwords: Superwords = field(default_factory=Superwords)

    def successors(self, block: Block) -> list[Block]:
        found = [self.blocks[block.target]] if block.target >= 0 else []
        if block.falls_through and block.index + 1 < len(self.blocks):
            found.append(self.blocks[block.index + 1])
        return found


def analyse(function: Function, cooperative: bool = False) -> Flow:
    """Blocks with liveness. Raises `Refused` for instructions that are not in the table, and for broken branches."""
    carry = _carry(function)
    blocks, places = split(function, carry)
    contract(blocks)
    if len(blocks) * len(function.registers) > MAX_LIVENESS_BITS:
        raise unsupported_feature(f"{len(blocks)} basic blocks with {len(function.registers)} registers")
    for block in blocks:
        if block.ends == "bra":
            target = block.last.instruction.operands[0]
            if not isinstance(target, Name) or target.text not in places:
                raise unreadable("a branch to a label that is not there")
            block.target = places[target.text]
    flow = Flow(blocks, _pure(function, blocks), _local(blocks), carry, _spins(blocks) if cooperative else frozenset())
    _liveness(flow)
    return flow


def _spins(blocks: list[Block]) -> frozenset[int]:
    back = [block for block in blocks if block.ends == "bra" and block.target <= block.index]
    looks = {block.index for block in blocks if any(_looks(step) for step in block.steps)}
    return frozenset(b.index for b in back if not looks.isdisjoint(range(b.target, b.index + 1)))


def _looks(step: Step) -> bool:
    """Whether a step sees what another thread wrote while this one runs: a strong load, a lock."""
    head, *words = step.instruction.opcode.split(".")
    strong = {"ld": {"volatile", "relaxed", "acquire"}, "atom": {"cas", "exch"}}.get(head, set())
    return not strong.isdisjoint(words)


def _carry(function: Function) -> int:
    """A register for the carry flag, where an instruction uses it: so it is kept like any other."""
    matches = (find(s.opcode) for s in function.code if isinstance(s, Instruction))
    if not any(match and match.form.carry for match in matches):
        return -1
    function.registers.append("pred")
    return len(function.registers) - 1


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


def _local(blocks: list[Block]) -> frozenset[int]:
    """Registers for `Flow.local`: none that a guarded instruction writes, none that a wait reads or writes."""
    written: Counter[int] = Counter()
    candidates: set[int] = set()
    others: set[int] = set()
    for block in blocks:
        made: set[int] = set()
        for step in block.steps:
            waits = step.match.form.sync
            others.update(register for register in step.reads if waits or register not in made)
            written.update(step.writes)
            if waits or step.instruction.guard is not None:
                others.update(step.writes)
            else:
                made.update(step.writes)
        candidates |= made
    return frozenset(r for r in candidates - others if written[r] == 1)


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
