"""mov, selp, ld, st, cvta, isspacep, and what orders memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu import lower_superword
from kerneltrial.devices.cpu.access import Access
from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.refusals import unsupported_instruction
from kerneltrial.devices.cpu.syntax import WIDTHS, Instruction, Memory, Operand, Register, SlotSymbol, Vector

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.generator import Generator

Fields = dict[str, str]


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def _mov(g: Generator, instruction: Instruction, f: Fields) -> None:
    """A copy; the canonical form of a NaN is left for later where source and destination both allow it."""
    target, source = instruction.operands
    if isinstance(target, Vector) or isinstance(source, Vector):
        _pack(g, instruction, f)
        return
    width = WIDTHS[f["t"]]
    if isinstance(target, Register) and target.index in g.flow.pure and isinstance(source, Register):
        raw = g.raw(source.index)
    else:
        g.same_width(source, width, instruction)
        raw = g.bits(source, width, f["t"])
    g.assign(target, f"b{width}" if width > 1 else "pred", raw, instruction)


def _pack(g: Generator, instruction: Instruction, f: Fields) -> None:
    """mov between one register and a vector of smaller ones."""
    target, source = instruction.operands
    whole = WIDTHS[f["t"]]
    many = _items(target if isinstance(target, Vector) else source)
    part = whole // len(many)
    if f["t"][0] != "b" or part not in (8, 16, 32) or part * len(many) != whole:
        raise unsupported_instruction(f"{instruction.opcode} of a vector of {len(many)}", instruction.line)
    if isinstance(target, Vector) and isinstance(source, Vector):
        raise unsupported_instruction(f"{instruction.opcode} between vectors", instruction.line)
    b = g.body
    if isinstance(source, Vector):
        result = "0"
        for n, item in enumerate(many):
            g.same_width(item, part, instruction)
            wide = b.op(f"zext i{part} {g.bits(item, part)} to i{whole}")
            result = b.op(f"or i{whole} {result}, {b.op(f'shl i{whole} {wide}, {n * part}')}")
        g.assign(target, f"b{whole}", result, instruction)
        return
    g.same_width(source, whole, instruction)
    value = g.bits(source, whole)
    for n, item in enumerate(many):
        piece = b.op(f"trunc i{whole} {b.op(f'lshr i{whole} {value}, {n * part}')} to i{part}")
        g.assign(item, f"b{part}", piece, instruction)


def _selp(g: Generator, instruction: Instruction, f: Fields) -> None:
    target, yes, no, which = instruction.operands
    width = WIDTHS[f["t"]]
    for operand in (yes, no):
        g.same_width(operand, width, instruction)
    values = [g.bits(operand, width, f["t"]) for operand in (yes, no)]
    chosen = g.body.op(f"select i1 {g.predicate(which, instruction)}, i{width} {values[0]}, i{width} {values[1]}")
    g.assign(target, f"b{width}", chosen, instruction)


def _space(f: Fields) -> str:
    word = f["space"].lstrip(".")
    return {"": "generic", "shared::cta": "shared"}.get(word, word)


def _load(g: Generator, instruction: Instruction, f: Fields) -> None:
    target = instruction.operands[0]
    items = _items(target)
    width = WIDTHS[f["t"]]
    lanes = int(f["v"][2:] or 1) if f["v"] else 1
    if len(items) != lanes or (lanes > 1) != isinstance(target, Vector):
        raise unsupported_instruction(f"{instruction.opcode} with {len(items)} registers", instruction.line)
    pointer = _place(g, instruction, _space(f), "read", width // 8 * lanes)
    registers = tuple(item.index for item in items if isinstance(item, Register))
    if width == 32 and registers in g.flow.superwords.vectors:
        lower_superword.load(g, registers, pointer)
        return
    for n, item in enumerate(items):
        here = g.body.op(f"getelementptr i8, ptr {pointer}, i64 {n * width // 8}")
        raw = g.body.op(f"load i{width}, ptr {here}, align {width // 8}")
        g.assign(item, f["t"] if f["t"][0] in "su" else f"b{width}", raw)


def _store(g: Generator, instruction: Instruction, f: Fields) -> None:
    source = instruction.operands[1]
    items = _items(source)
    width = WIDTHS[f["t"]]
    lanes = int(f["v"][2:] or 1) if f["v"] else 1
    if len(items) != lanes or (lanes > 1) != isinstance(source, Vector):
        raise unsupported_instruction(f"{instruction.opcode} with {len(items)} registers", instruction.line)
    if f.get("sem", "").startswith(".release"):
        fenced(g, f["sem"])
    values = []
    for item in items:
        if isinstance(item, Register) and WIDTHS[g.function.registers[item.index]] < width:
            raise unsupported_instruction(f"{instruction.opcode} with a narrow register", instruction.line)
        values.append(g.bits(item, width, f["t"]))
    pointer = _place(g, instruction, _space(f), "write", width // 8 * lanes, _joined(g, values, width))
    for n, value in enumerate(values):
        here = g.body.op(f"getelementptr i8, ptr {pointer}, i64 {n * width // 8}")
        g.body.do(f"store i{width} {value}, ptr {here}, align {width // 8}")


def _joined(g: Generator, values: list[str], width: int) -> str:
    """The values of a vector as one integer, as they lie in memory; empty where no check will ask."""
    if g.level != "all" or len(values) == 1:
        return values[0] if g.level == "all" else ""
    b, whole = g.body, width * len(values)
    joined = "0"
    for n, value in enumerate(values):
        wide = b.op(f"zext i{width} {value} to i{whole}")
        joined = b.op(f"or i{whole} {joined}, {b.op(f'shl i{whole} {wide}, {n * width}')}")
    return joined


def _place(g: Generator, instruction: Instruction, space: str, kind: str, size: int, stored: str = "") -> str:
    """The host pointer of the instruction's memory operand; `stored` is what a store will write there."""
    memory = next(operand for operand in instruction.operands if isinstance(operand, Memory))
    if space == "param":
        place = memory.place
        if not isinstance(place, SlotSymbol):
            raise unsupported_instruction(f"{instruction.opcode} with an address in a register", instruction.line)
        entry_parameter = g.function.slots[place.slot].offset >= 0
        if kind == "write" and entry_parameter:
            raise unsupported_instruction(f"{instruction.opcode} to a parameter of the entry", instruction.line)
        return g.slot_pointer(place.slot, place.offset + memory.offset, size, instruction)
    if size > 16:
        raise unsupported_instruction(instruction.opcode, instruction.line)
    access = Access(g, instruction, space, kind, size)
    access.stored = stored
    return access.pointer(g.address(memory, instruction))


_WINDOWS = {"shared": at.SHARED_BASE, "local": at.LOCAL_BASE}


def _cvta(g: Generator, instruction: Instruction, f: Fields) -> None:
    """Between a window and the generic space; global and constant addresses are generic ones already."""
    target, source = instruction.operands
    g.same_width(source, 64, instruction)
    value = g.bits(source, 64)
    base = _WINDOWS.get(f["space"].split(":")[0], 0)
    if base:
        value = g.body.op(f"{'sub' if f['to'] else 'add'} i64 {value}, {base}")
    g.assign(target, "u64", value, instruction)


def _isspacep(g: Generator, instruction: Instruction, f: Fields) -> None:
    target, source = instruction.operands
    g.same_width(source, 64, instruction)
    b = g.body
    value = g.bits(source, 64)

    def within(base: int) -> str:
        return b.op(f"icmp ult i64 {b.op(f'sub i64 {value}, {base}')}, {at.WINDOW_BYTES}")

    space = f["space"].split(":")[0]
    if space in _WINDOWS:
        result = within(_WINDOWS[space])
    else:
        windows = b.op(f"or i1 {within(at.SHARED_BASE)}, {within(at.LOCAL_BASE)}")
        result = b.op(f"xor i1 {windows}, true")
    g.assign(target, "pred", result, instruction)


def fenced(g: Generator, scope: str) -> None:
    """Under all checks: note a fence, and whether it is for the whole card."""
    if g.level == "all":
        card = "false" if scope.endswith("cta") else "true"
        g.body.call("void", "kt_fence", ("ptr", "%blk"), ("ptr", "%ctx"), ("i1", card))


def _fence(g: Generator, instruction: Instruction, f: Fields) -> None:
    """Threads run one after the other and write through, so that only the check of races has to know."""
    fenced(g, f["scope"])


def _nothing(g: Generator, instruction: Instruction, f: Fields) -> None:
    """Threads run one after the other and write through, so every order that PTX asks for is kept."""


_TYPES = "{t:b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64}"
_V = "{v:|.v2|.v4}"
_L1 = "{l1:|.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate}"
_L2 = "{l2:|.L2::64B|.L2::128B|.L2::256B}"
_ORDER_LD = "{sem:.relaxed.cta|.relaxed.gpu|.relaxed.sys|.acquire.cta|.acquire.gpu|.acquire.sys}"
_ORDER_ST = "{sem:.relaxed.cta|.relaxed.gpu|.relaxed.sys|.release.cta|.release.gpu|.release.sys}"
_ANY = "{space:|.global|.shared|.shared::cta|.local|.const|.param}"
_DATA = "{space:|.global|.shared|.shared::cta}"
_PLACES = "{space:|.global|.shared|.shared::cta|.local|.param}"
_PLAIN = "{sem:|.weak|.volatile}"
_READ_CACHE = "{cop:|.ca|.cg|.cs|.lu|.cv}"
_WRITE_CACHE = "{cop:|.wb|.cg|.cs|.wt}"
_FENCE = "cta|gpu|sys"

FORMS = (
    Form("mov.{t:pred|b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64}", "={} any", _mov, "move", raw=True, copies=True),
    Form("selp.{t:b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64}", "=t t t pred", _selp, "move", raw=True),
    Form(f"ld{_PLAIN}{_ANY}{_READ_CACHE}{_L1}{_L2}{_V}.{_TYPES}", "={} []", _load, "load", raw=True),
    Form(f"ld{{space:.global}}.nc{{cop:|.ca|.cg|.cs}}{_L1}{_L2}{_V}.{_TYPES}", "={} []", _load, "load", raw=True),
    Form(f"ld{_ORDER_LD}{_DATA}{_L1}{_L2}{_V}.{_TYPES}", "={} []", _load, "load", raw=True),
    Form(f"st{_PLAIN}{_PLACES}{_WRITE_CACHE}{_L1}{_V}.{_TYPES}", "[] {}", _store, "store", raw=True),
    Form(f"st{_ORDER_ST}{_DATA}{_L1}{_V}.{_TYPES}", "[] {}", _store, "store", raw=True),
    Form("cvta{to:|.to}.{space:global|const|shared|shared::cta|local}.u64", "=u64 u64", _cvta, "integer", raw=True),
    Form("isspacep.{space:global|shared|shared::cta|local}", "=pred u64", _isspacep, "integer", raw=True),
    Form("prefetch{space:|.global|.local}.{level:L1|L2}", "[]", _nothing, "fence", raw=True),
    Form("prefetchu.L1", "[]", _nothing, "fence", raw=True),
    Form("nanosleep.u32", "b32", _nothing, "fence", raw=True),
    Form(f"membar.{{scope:{_FENCE}|gl}}", "", _fence, "fence", raw=True),
    Form(f"fence{{sem:|.sc|.acq_rel}}.{{scope:{_FENCE}}}", "", _fence, "fence", raw=True),
)  # fmt: skip
