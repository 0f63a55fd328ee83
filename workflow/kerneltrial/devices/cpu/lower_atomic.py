"""atom and red: read, combine and write at once. One thread runs at a time, so no lock is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerneltrial.devices.cpu import half
from kerneltrial.devices.cpu.access import Access
from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.ir import Body
from kerneltrial.devices.cpu.lower_float import LLVM, canonical_nan, flush
from kerneltrial.devices.cpu.lower_memory import fenced
from kerneltrial.devices.cpu.syntax import WIDTHS, Instruction, Memory, Sink

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.generator import Generator

Fields = dict[str, str]


def _atomic(g: Generator, instruction: Instruction, f: Fields) -> None:
    operands = list(instruction.operands)
    target = Sink() if f["op"] == "red" else operands.pop(0)
    memory = operands.pop(0)
    assert isinstance(memory, Memory)
    type_ = f["t"]
    width = WIDTHS[type_]
    space = {"": "generic", ".shared::cta": "shared"}.get(f["space"], f["space"].lstrip("."))
    if f["sem"] in (".release", ".acq_rel"):
        fenced(g, f["scope"])
    values = [g.value(operand, type_, instruction) for operand in operands]
    access = Access(g, instruction, space, "update", width // 8)
    pointer, shared = access.pointer_and_space(g.address(memory, instruction))
    llvm_type = LLVM.get(type_, f"i{width}")
    old = g.body.op(f"load {llvm_type}, ptr {pointer}, align {width // 8}")
    if type_ == "f32":
        bits = g.body.op(f"bitcast float {_float_sum(g.body, old, values[0], shared)} to i32")
        llvm_type, new = "i32", canonical_nan(g.body, bits)
    elif half.scalar(type_) in half.ONE:
        new = half.each(g.body, type_, lambda p, q: _half_sum(g.body, half.scalar(type_), p, q), old, values[0])
    elif type_ == "f64":
        new = g.body.op(f"fadd double {old}, {values[0]}")
    else:
        new = _combine(g.body, f["what"], type_, old, *values)
    g.body.do(f"store {llvm_type} {new}, ptr {pointer}, align {width // 8}")
    g.assign(target, type_, old, instruction)


def _float_sum(b: Body, old: str, value: str, shared: str) -> str:
    """PTX: in global memory, subnormal operands and results are flushed; in shared memory they are not."""
    plain = b.op(f"fadd float {old}, {value}")
    flushed = flush(b, b.op(f"fadd float {flush(b, old)}, {flush(b, value)}"))
    return b.op(f"select i1 {shared}, float {plain}, float {flushed}")


def _half_sum(b: Body, t: str, old: str, value: str) -> str:
    """.noftz: subnormals are kept, in every space."""
    return half.narrow(b, t, b.op(f"fadd float {half.widen(b, t, old)}, {half.widen(b, t, value)}"))


def _combine(b: Body, what: str, type_: str, old: str, value: str, swap: str = "") -> str:
    """What an integer atomic writes."""
    i = f"i{WIDTHS[type_]}"
    sign = "s" if type_[0] == "s" else "u"
    match what:
        case "add" | "and" | "or" | "xor":
            return b.op(f"{what} {i} {old}, {value}")
        case "exch":
            return value
        case "min" | "max":
            return b.call(i, f"llvm.{sign}{what}.{i}", (i, old), (i, value))
        case "inc":
            wraps = b.op(f"icmp uge {i} {old}, {value}")
            return b.op(f"select i1 {wraps}, {i} 0, {i} {b.op(f'add {i} {old}, 1')}")
        case "dec":
            zero = b.op(f"icmp eq {i} {old}, 0")
            wraps = b.op(f"or i1 {zero}, {b.op(f'icmp ugt {i} {old}, {value}')}")
            return b.op(f"select i1 {wraps}, {i} {value}, {i} {b.op(f'sub {i} {old}, 1')}")
        case "cas":
            return b.op(f"select i1 {b.op(f'icmp eq {i} {old}, {value}')}, {i} {swap}, {i} {old}")
    raise AssertionError(what)


_ORDER = "{sem:|.relaxed|.acquire|.release|.acq_rel}{scope:|.cta|.gpu|.sys}{space:|.global|.shared|.shared::cta}"
# CUDA's atomicAdd_block and atomicAdd_system: the scope stands behind the space
_SCOPED = "{sem:}{space:.global|.shared|.shared::cta}{scope:.cta|.gpu|.sys}"
_RED_ORDER = "{sem:|.relaxed|.release}{scope:|.cta|.gpu|.sys}{space:|.global|.shared|.shared::cta}"
_G = "atomic"
_HALVES = "f16|f16x2|bf16|bf16x2"
_TYPES = (
    ("add", "u32|s32|u64|f32|f64"),
    ("and", "b32|b64"),
    ("or", "b32|b64"),
    ("xor", "b32|b64"),
    ("min", "u32|s32|u64|s64"),
    ("max", "u32|s32|u64|s64"),
    ("inc", "u32"),
    ("dec", "u32"),
)

FORMS = (
    # as the toolkit writes it where a grid meets: the order behind the operation
    Form("{op:atom}.{what:add}{sem:.release}{scope:.gpu}{space:}.{t:u32}", "=t [] t", _atomic, _G, raw=True),
    *(Form(f"{{op:atom}}{_ORDER}.{{what:{w}}}.{{t:{t}}}", "=t [] t", _atomic, _G, raw=True) for w, t in _TYPES),
    Form(f"{{op:atom}}{_ORDER}.{{what:exch}}.{{t:b32|b64}}", "=t [] t", _atomic, _G, raw=True),
    Form(f"{{op:atom}}{_ORDER}.{{what:cas}}.{{t:b16|b32|b64}}", "=t [] t t", _atomic, _G, raw=True),
    Form(f"{{op:atom}}{_ORDER}.{{what:add}}.noftz.{{t:{_HALVES}}}", "=t [] t", _atomic, _G, raw=True),
    Form(f"{{op:red}}{_RED_ORDER}.{{what:add}}.noftz.{{t:{_HALVES}}}", "[] t", _atomic, _G, raw=True),
    *(Form(f"{{op:red}}{_RED_ORDER}.{{what:{w}}}.{{t:{t}}}", "[] t", _atomic, _G, raw=True) for w, t in _TYPES),
    *(Form(f"{{op:atom}}{_SCOPED}.{{what:{w}}}.{{t:{t}}}", "=t [] t", _atomic, _G, raw=True) for w, t in _TYPES),
    *(Form(f"{{op:red}}{_SCOPED}.{{what:{w}}}.{{t:{t}}}", "[] t", _atomic, _G, raw=True) for w, t in _TYPES),
    Form(f"{{op:atom}}{_SCOPED}.{{what:exch}}.{{t:b32|b64}}", "=t [] t", _atomic, _G, raw=True),
    Form(f"{{op:atom}}{_SCOPED}.{{what:cas}}.{{t:b16|b32|b64}}", "=t [] t t", _atomic, _G, raw=True),
)
