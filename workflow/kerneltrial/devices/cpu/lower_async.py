"""cp.async and the waits for it. What a copy does, and when, is in `asynchronous`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.access import Access
from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.refusals import unsupported_instruction
from kerneltrial.devices.cpu.syntax import Instruction, Memory, Operand

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.generator import Generator

Fields = dict[str, str]
_SIZES = {"ca": (4, 8, 16), "cg": (16,)}


def _copy(g: Generator, instruction: Instruction, f: Fields) -> None:
    target, source, whole, *rest = instruction.operands
    assert isinstance(target, Memory)
    assert isinstance(source, Memory)
    b, size = g.body, g.constant(whole)
    if size not in _SIZES[f["level"]]:
        raise unsupported_instruction(f"{instruction.opcode} of {size} bytes", instruction.line)
    offset = g.address(target, instruction)
    Access(g, instruction, "shared", "write", size).pointer(offset)
    address = g.address(source, instruction)
    length, pointer = _source(g, instruction, address, size, rest)
    full = g.site(instruction, kind="copies")
    started = b.call(
        "i1", "kt_copy_start", ("ptr", "%blk"), ("ptr", "%ctx"), ("i64", offset), ("ptr", pointer), ("i32", size),
        ("i32", length),
    )  # fmt: skip
    g.require(started, full)


def _source(
    g: Generator, instruction: Instruction, address: str, size: int, rest: list[Operand]
) -> tuple[str | int, str]:
    """How many bytes are read, and a pointer to them: only these are checked, but the address must be aligned."""
    b = g.body
    if not rest:
        return size, Access(g, instruction, "global", "read", size).pointer(address)
    g.same_width(rest[0], 32, instruction)
    length = g.bits(rest[0], 32)
    g.require(b.op(f"icmp ule i32 {length}, {size}"), g.site(instruction, kind="length"))
    low = b.op(f"and i64 {address}, {size - 1}")
    aligned = g.site(instruction, "global", "read", size)
    g.require(b.op(f"icmp eq i64 {low}, 0"), aligned, address)
    place = b.variable("ptr", b.field("%blk", at.BLOCK["arena"], "ptr"))
    whole = b.op(f"icmp eq i32 {length}, {size}")
    with b.when(whole):
        place.set(Access(g, instruction, "global", "read", size).pointer(address))
    part = b.op(f"and i1 {b.op(f'xor i1 {whole}, true')}, {b.op(f'icmp ne i32 {length}, 0')}")
    with b.when(part):
        checked = Access(g, instruction, "global", "read", 1)
        place.set(checked.pointer(address))
        with b.loop(1, length) as byte:
            wide = b.op(f"zext i32 {byte} to i64")
            checked.pointer(b.op(f"add i64 {address}, {wide}"))
    return length, place.get()


def _commit(g: Generator, instruction: Instruction, f: Fields) -> None:
    b = g.body
    b.set_field("%ctx", at.COPY_GROUP, "i32", b.op(f"add i32 {g.context_field(at.COPY_GROUP)}, 1"))


def _wait(g: Generator, below: str) -> None:
    g.body.call("void", "kt_copy_wait", ("ptr", "%blk"), ("ptr", "%ctx"), ("i32", below))


def _wait_group(g: Generator, instruction: Instruction, f: Fields) -> None:
    """All groups but the last N that were committed."""
    recent = min(g.constant(instruction.operands[0]), 1 << 30)
    _wait(g, g.body.op(f"sub i32 {g.context_field(at.COPY_GROUP)}, {recent}"))


def _wait_all(g: Generator, instruction: Instruction, f: Fields) -> None:
    """As a commit and a wait for all groups."""
    _commit(g, instruction, f)
    _wait(g, g.context_field(at.COPY_GROUP))


_HINTS = "{hint:|.L2::64B|.L2::128B|.L2::256B}"
_G = "copy"

FORMS = (
    Form(f"cp.async.{{level:ca|cg}}.shared{{cta:|::cta}}.global{_HINTS}", "[] [] # b32?", _copy, _G, raw=True),
    Form("cp.async.commit_group", "", _commit, "fence", raw=True),
    Form("cp.async.wait_group", "#", _wait_group, "fence", raw=True),
    Form("cp.async.wait_all", "", _wait_all, "fence", raw=True),
)
