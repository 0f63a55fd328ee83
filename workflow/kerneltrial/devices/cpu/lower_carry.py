"""Chains of additions and subtractions with carry: add.cc, addc, sub.cc, subc, mad.cc, madc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.syntax import WIDTHS, Instruction, Register

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.generator import Generator

Fields = dict[str, str]


def _chained(g: Generator, instruction: Instruction, f: Fields) -> None:
    """The sum or difference with the flag where the instruction reads it; the flag is the carry or borrow out."""
    target, *sources = instruction.operands
    b, width = g.body, WIDTHS[f["t"]]
    flag = Register(g.flow.carry)
    for source in sources:
        g.same_width(source, width, instruction)
    values = [g.bits(source, width) for source in sources]
    if f["op"].startswith("mad"):
        sign = "sext" if f["t"][0] == "s" else "zext"
        wide = [b.op(f"{sign} i{width} {v} to i{2 * width}") for v in values[:2]]
        product = b.op(f"mul i{2 * width} {wide[0]}, {wide[1]}")
        if f["half"] == ".hi":
            product = b.op(f"lshr i{2 * width} {product}, {width}")
        values = [b.op(f"trunc i{2 * width} {product} to i{width}"), values[2]]
    more = width + 2
    x, y = (b.op(f"zext i{width} {v} to i{more}") for v in values)
    word = "sub" if f["op"].startswith("sub") else "add"
    total = b.op(f"{word} i{more} {x}, {y}")
    if f["op"].endswith("c"):
        carried = b.op(f"zext i1 {g.bits(flag, 1)} to i{more}")
        total = b.op(f"{word} i{more} {total}, {carried}")
    g.assign(target, f["t"], b.op(f"trunc i{more} {total} to i{width}"), instruction)
    if f["cc"]:
        g.assign(flag, "pred", b.op(f"trunc i{more} {b.op(f'lshr i{more} {total}, {width}')} to i1"))


_T = "{t:u32|s32|u64|s64}"


def _forms(op: str, half: str, operands: str) -> tuple[Form, ...]:
    return (
        Form(f"{{op:{op}}}{half}{{cc:.cc}}.{_T}", operands, _chained, "integer", raw=True, carry="w"),
        Form(f"{{op:{op}c}}{half}{{cc:|.cc}}.{_T}", operands, _chained, "integer", raw=True, carry="rw"),
    )


FORMS = (
    *_forms("add", "", "=t t t"),
    *_forms("sub", "", "=t t t"),
    *_forms("mad", "{half:.lo|.hi}", "=t t t t"),
)
