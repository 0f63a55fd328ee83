"""Branches and ends: what they do is in `generator`, where blocks are; here stands what they look like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.refusals import unsupported_instruction
from kerneltrial.devices.cpu.syntax import Instruction, SlotSymbol

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.generator import Generator


def _by_block(g: Generator, instruction: Instruction, f: dict[str, str]) -> None:
    raise AssertionError("control flow is made by blocks")


def _print(g: Generator, instruction: Instruction, f: dict[str, str]) -> None:
    """A call of vprintf. What it returns is the launch's poison: no result may depend on it."""
    b = g.body
    pointers: list[str] = []
    for operand, size in zip(instruction.operands, (4, 8, 8), strict=True):
        if not isinstance(operand, SlotSymbol) or operand.offset:
            raise unsupported_instruction(instruction.opcode, instruction.line)
        if not pointers and g.function.slots[operand.slot].offset >= 0:
            raise unsupported_instruction("a call that returns into a parameter of the kernel", instruction.line)
        pointers.append(g.slot_pointer(operand.slot, 0, size, instruction))
    g.site(instruction, kind="print")
    text, arguments = (b.op(f"load i64, ptr {pointer}") for pointer in pointers[1:])
    b.call("void", "kt_print", ("ptr", "%blk"), ("ptr", "%ctx"), ("i64", text), ("i64", arguments))
    b.do(f"store i32 {b.field('%blk', at.BLOCK['poison'], 'i32')}, ptr {pointers[0]}")


_G = "control"

FORMS = (
    Form("bra{uni:|.uni}", "label", _by_block, _G, raw=True),
    Form("ret{uni:|.uni}", "", _by_block, _G, raw=True),
    Form("exit", "", _by_block, _G, raw=True),
    Form("trap", "", _by_block, _G, raw=True),
    Form("vprintf", "b32 b64 b64", _print, _G, raw=True),
)
