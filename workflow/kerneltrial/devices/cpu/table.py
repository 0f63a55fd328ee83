"""The instruction table: strict. An opcode with its modifiers and types is in it whole, or it is unsupported."""

from functools import lru_cache

from kerneltrial.devices.cpu import (
    lower_async,
    lower_atomic,
    lower_bits,
    lower_carry,
    lower_control,
    lower_convert,
    lower_float,
    lower_half,
    lower_integer,
    lower_matrix,
    lower_memory,
    lower_rounding,
    lower_special,
    lower_warp,
)
from kerneltrial.devices.cpu.forms import Form, Match
from kerneltrial.devices.cpu.refusals import unsupported_instruction
from kerneltrial.devices.cpu.syntax import (
    Group,
    Immediate,
    Instruction,
    Memory,
    Name,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    SlotSymbol,
    Special,
    Symbol,
    Vector,
)

FORMS: tuple[Form, ...] = (
    *lower_integer.FORMS,
    *lower_bits.FORMS,
    *lower_carry.FORMS,
    *lower_float.FORMS,
    *lower_half.FORMS,
    *lower_rounding.FORMS,
    *lower_special.FORMS,
    *lower_convert.FORMS,
    *lower_memory.FORMS,
    *lower_async.FORMS,
    *lower_atomic.FORMS,
    *lower_control.FORMS,
    *lower_warp.FORMS,
    *lower_matrix.FORMS,
)

_BY_HEAD: dict[str, list[Form]] = {}
for _form in FORMS:
    _BY_HEAD.setdefault(_form.head, []).append(_form)


@lru_cache(maxsize=4096)
def find(opcode: str) -> Match | None:
    """The entry of an opcode, or None."""
    for form in _BY_HEAD.get(opcode.split(".", 1)[0], ()):
        match = form.expression.fullmatch(opcode)
        if match:
            return Match(form, match.groupdict())
    return None


def resolve(instruction: Instruction) -> Match:
    """The entry of an instruction, its operands checked; raises `Refused` where it is not in the table."""
    match = find(instruction.opcode)
    if match is None:
        raise unsupported_instruction(instruction.opcode, instruction.line)
    specs = match.form.specs
    needed = [s for s in specs if not s.endswith("?") or s.startswith("=")]
    given = instruction.operands
    fits = len(needed) <= len(given) <= len(specs) and all(
        _fits(spec, operand) for spec, operand in zip(specs, given, strict=False)
    )
    if not fits:
        raise unsupported_instruction(f"{instruction.opcode} with these operands", instruction.line)
    return match


def _fits(spec: str, operand: Operand) -> bool:
    word = spec.rstrip("?")
    if word.startswith("="):
        if word == "={}":
            items = operand.items if isinstance(operand, Vector) else (operand,)
            return all(isinstance(item, Register | Sink) for item in items)
        if isinstance(operand, Pair):
            return (
                "|" in word
                and isinstance(operand.first, Register | Sink)
                and isinstance(operand.second, Register | Sink)
            )
        return isinstance(operand, Register | Sink)
    if word == "#":
        return isinstance(operand, Immediate) and operand.kind == "int"
    if word == "[]":
        return isinstance(operand, Memory)
    if word == "label":
        return isinstance(operand, Name)
    if word == "{}":
        items = operand.items if isinstance(operand, Vector) else (operand,)
        return all(isinstance(item, Register | Immediate | Special) for item in items)
    if word == "pred":
        return isinstance(operand, Register | Not | Immediate)
    if word == "any":
        return not isinstance(operand, Group | Name | Memory | Sink | Not | Pair)
    return isinstance(operand, Register | Immediate | Special | Symbol | SlotSymbol)
