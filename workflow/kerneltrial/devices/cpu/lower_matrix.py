"""ldmatrix, movmatrix, mma.sync and wmma: what a warp does with small matrices together.

How wmma spreads a matrix over registers is open in PTX; here it is as for mma.m16n8k16: A in registers 0 to 3 (and
again in 4 to 7 where the fragment has eight), B as two halves of eight columns, accumulators as two halves as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kerneltrial.devices.cpu import half
from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.access import Access
from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.lower_float import canonical_nan
from kerneltrial.devices.cpu.lower_warp import visible_words, word_of_lane
from kerneltrial.devices.cpu.refusals import unsupported_instruction
from kerneltrial.devices.cpu.syntax import Instruction, Memory, Operand, Vector
from kerneltrial.devices.cpu.tensor import Product

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.generator import Generator

Fields = dict[str, str]


def _items(operand: Operand, count: int, instruction: Instruction) -> tuple[Operand, ...]:
    items = operand.items if isinstance(operand, Vector) else (operand,)
    if len(items) != count:
        raise unsupported_instruction(f"{instruction.opcode} with {len(items)} registers", instruction.line)
    return items


def _read(g: Generator, operand: Operand, count: int, instruction: Instruction) -> list[str]:
    """The registers of a fragment, 32 bits each."""
    items = _items(operand, count, instruction)
    for item in items:
        g.same_width(item, 32, instruction)
    return [g.bits(item, 32) for item in items]


def _write(g: Generator, operand: Operand, values: list[str], instruction: Instruction) -> None:
    for item, value in zip(_items(operand, len(values), instruction), values, strict=True):
        g.assign(item, "b32", value, instruction)


# -- ldmatrix, movmatrix


def _ldmatrix(g: Generator, instruction: Instruction, f: Fields) -> None:
    """Lanes 8i to 8i+7 give the addresses of the rows of matrix i: 16 bytes each, read and checked by that lane."""
    target, memory = instruction.operands
    assert isinstance(memory, Memory)
    b, count = g.body, int(f["x"])
    row = b.variable("i32", 0)
    lane = g.context_field(at.LANE)
    with b.when(b.op(f"icmp ult i32 {lane}, {8 * count}")):
        address = g.address(memory, instruction)
        Access(g, instruction, "shared", "read", 16).pointer(address)
        row.set(b.op(f"trunc i64 {address} to i32"))
    g.wait(at.AT_COLLECTIVE, "-1", [row.get()], instruction)
    lane = g.context_field(at.LANE)
    shared = b.field("%blk", at.BLOCK["shared"], "ptr")
    high, low = b.op(f"lshr i32 {lane}, 2"), b.op(f"and i32 {lane}, 3")

    def element(matrix: int, line: str, offset: str, type_: str) -> str:
        start = word_of_lane(g, b.op(f"add i32 {line}, {8 * matrix}"))
        place = b.op(f"zext i32 {b.op(f'add i32 {start}, {offset}')} to i64")
        return b.op(f"load {type_}, ptr {b.op(f'getelementptr i8, ptr {shared}, i64 {place}')}, align 2")

    values = []
    for matrix in range(count):
        if not f["trans"]:
            values.append(element(matrix, high, b.op(f"shl i32 {low}, 2"), "i32"))
            continue
        first = b.op(f"shl i32 {low}, 1")
        offset = b.op(f"shl i32 {high}, 1")
        pair = [element(matrix, b.op(f"add i32 {first}, {k}"), offset, "i16") for k in (0, 1)]
        values.append(half.packed(b, *pair))
    _write(g, target, values, instruction)


def _movmatrix(g: Generator, instruction: Instruction, f: Fields) -> None:
    """An 8 x 8 matrix transposed: element (r, c) lies in lane 4r + c/2."""
    target, source = instruction.operands
    g.same_width(source, 32, instruction)
    g.wait(at.AT_COLLECTIVE, "-1", [g.bits(source, 32)], instruction)
    b, lane = g.body, g.context_field(at.LANE)
    column, first = b.op(f"lshr i32 {lane}, 2"), b.op(f"shl i32 {b.op(f'and i32 {lane}, 3')}, 1")
    shift = b.op(f"shl i32 {b.op(f'and i32 {column}, 1')}, 4")
    pair = []
    for k in (0, 1):
        row = b.op(f"shl i32 {b.op(f'add i32 {first}, {k}')}, 2")
        word = word_of_lane(g, b.op(f"add i32 {row}, {b.op(f'lshr i32 {column}, 1')}"))
        pair.append(b.op(f"trunc i32 {b.op(f'lshr i32 {word}, {shift}')} to i16"))
    g.assign(target, "b32", half.packed(b, *pair), instruction)


# -- products


def _sums(g: Generator, product: Product, b_from: int) -> list[str]:
    """This lane's four sums of products; the words of A are visible first, those of B from `b_from` on."""
    b = g.body
    out = b.variable(f"[4 x {product.total}]").pointer
    start = visible_words(g)
    arguments = (
        ("ptr", "%ctx"), ("i64", g.layout.context_bytes), ("i64", start), ("i64", start + 4 * b_from), ("ptr", out),
    )  # fmt: skip
    b.call("void", product.symbol, *arguments)
    return [b.field(out, k * (4 if product.total == "i32" else 8), product.total) for k in range(4)]


def _accumulated(g: Generator, sums: list[str], before: list[str], c: str, d: str) -> list[str]:
    """Four sums with their accumulators added, as registers: four of f32 or s32, or two pairs of f16."""
    b = g.body
    if d == "s32":
        return [b.op(f"add i32 {s}, {old}") for s, old in zip(sums, before, strict=True)]
    if c == "f32":
        old = [b.op(f"fpext float {b.op(f'bitcast i32 {v} to float')} to double") for v in before]
    else:
        parts = [part for pair in before for part in half.halves(b, pair)]
        old = [b.op(f"fpext float {half.widen(b, 'f16', p)} to double") for p in parts]
    totals = [b.op(f"fadd double {s}, {o}") for s, o in zip(sums, old, strict=True)]
    if d == "f32":
        rounded = [b.op(f"bitcast float {b.op(f'fptrunc double {t} to float')} to i32") for t in totals]
        return [canonical_nan(b, r) for r in rounded]
    small = [half.narrow(b, "f16", half.to_odd(b, t)) for t in totals]
    return [half.packed(b, *small[:2]), half.packed(b, *small[2:])]


def _mma(g: Generator, instruction: Instruction, f: Fields) -> None:
    target, a, b_, c = instruction.operands
    product = Product(f["a"], f["b"], int(f["k"]))
    words = _read(g, a, product.a_words, instruction) + _read(g, b_, product.b_words, instruction)
    g.wait(at.AT_COLLECTIVE, "-1", words, instruction)
    before = _read(g, c, 2 if f["c"] == "f16" else 4, instruction)
    sums = _sums(g, product, product.a_words)
    _write(g, target, _accumulated(g, sums, before, f["c"], f["d"]), instruction)


def _wmma(g: Generator, instruction: Instruction, f: Fields) -> None:
    """Two products of eight columns each."""
    target, a, b_, c = instruction.operands
    t = f.get("ab") or "f16"
    registers = 8 if t == "f16" else 4
    words = _read(g, a, registers, instruction)[:4] + _read(g, b_, registers, instruction)[:4]
    g.wait(at.AT_COLLECTIVE, "-1", words, instruction)
    before = _read(g, c, 4 if f["c"] == "f16" else 8, instruction)
    results = []
    for side in (0, 1):
        sums = _sums(g, Product(t, t, 16), 4 + 2 * side)
        part = len(before) // 2
        results += _accumulated(g, sums, before[part * side : part * (side + 1)], f["c"], f["d"])
    _write(g, target, results, instruction)


# -- wmma loads and stores


def _places(what: str, type_: str) -> list[tuple[int, int, int]]:
    """Of each register: how far its first element's row and column lie behind (g, 2t), or behind (2t, g) for B; and
    how many elements it holds."""
    if what in ("c", "d") and type_ == "f32":
        return [(8 * (k // 2 % 2), 8 * (k // 4) + k % 2, 1) for k in range(8)]
    if what == "b":
        return [(8 * (k % 2), 8 * (k // 2), 2) for k in range(4)]
    return [(8 * (k % 2), 8 * (k // 2), 2) for k in range(4)]


class _Matrix:
    """Where this lane's elements of a 16 x 16 matrix lie in memory."""

    def __init__(self, g: Generator, instruction: Instruction, f: Fields, operands: list[Operand]) -> None:
        memory, stride = operands[0], operands[1] if len(operands) > 1 else None
        assert isinstance(memory, Memory)
        self.g, self.instruction, self.f = g, instruction, f
        b = g.body
        self.size = 4 if f["t"] == "f32" else 2
        self.space = {"": "generic", ".shared::cta": "shared"}.get(f["space"], f["space"].lstrip("."))
        self.start = g.address(memory, instruction)
        if stride is not None:
            g.same_width(stride, 32, instruction)
        self.stride = b.op(f"zext i32 {g.bits(stride, 32)} to i64") if stride is not None else "16"
        lane = g.context_field(at.LANE)
        group = b.op(f"zext i32 {b.op(f'lshr i32 {lane}, 2')} to i64")
        inner = b.op(f"and i32 {lane}, 3")
        pair = b.op(f"zext i32 {b.op(f'shl i32 {inner}, 1')} to i64")
        self.row, self.column = (pair, group) if f["what"] == "b" else (group, pair)
        site = g.site(instruction, self.space, "write" if f["op"] == "store" else "read", 32)
        low = b.op(f"and i64 {self.start}, 31")
        g.require(b.op(f"icmp eq i64 {low}, 0"), site, self.start)

    def pointer(self, row: int, column: int, kind: str, size: int) -> str:
        """The checked pointer of the element `row` and `column` behind this lane's first."""
        b = self.g.body
        r, c = b.op(f"add i64 {self.row}, {row}"), b.op(f"add i64 {self.column}, {column}")
        along, across = (r, c) if self.f["layout"] == "row" else (c, r)
        element = b.op(f"add i64 {b.op(f'mul i64 {along}, {self.stride}')}, {across}")
        address = b.op(f"add i64 {self.start}, {b.op(f'mul i64 {element}, {self.size}')}")
        return Access(self.g, self.instruction, self.space, kind, size).pointer(address)

    def next(self, row: int, column: int) -> tuple[int, int]:
        """The second element of a register lies one further along k in A and B, along the row in accumulators."""
        return (row + 1, column) if self.f["what"] == "b" else (row, column + 1)

    def contiguous(self) -> bool:
        return (self.f["layout"] == "col") == (self.f["what"] == "b")


def _wmma_load(g: Generator, instruction: Instruction, f: Fields) -> None:
    target = instruction.operands[0]
    b = g.body
    matrix = _Matrix(g, instruction, f, list(instruction.operands[1:]))
    values = []
    for row, column, elements in _places(f["what"], f["t"]):
        if elements == 1 or matrix.contiguous():
            values.append(b.op(f"load i32, ptr {matrix.pointer(row, column, 'read', 4)}"))
            continue
        places = [(row, column), matrix.next(row, column)]
        values.append(half.packed(b, *(b.op(f"load i16, ptr {matrix.pointer(*p, 'read', 2)}") for p in places)))
    if f["what"] in ("a", "b") and f["t"] == "f16":
        values += values
    _write(g, target, values, instruction)


def _wmma_store(g: Generator, instruction: Instruction, f: Fields) -> None:
    memory, source, *stride = instruction.operands
    b = g.body
    f = {**f, "what": "d"}
    matrix = _Matrix(g, instruction, f, [memory, *stride])
    places = _places("d", f["t"])
    for value, (row, column, elements) in zip(_read(g, source, len(places), instruction), places, strict=True):
        if elements == 1 or matrix.contiguous():
            b.do(f"store i32 {value}, ptr {matrix.pointer(row, column, 'write', 4)}")
            continue
        for part, place in zip(half.halves(b, value), [(row, column), matrix.next(row, column)], strict=True):
            b.do(f"store i16 {part}, ptr {matrix.pointer(*place, 'write', 2)}")


def _product(pattern: str, lower: Any = _mma) -> Form:
    return Form(pattern, "={} {} {} {}", lower, "matrix", raw=True, sync=True, words=8)


_MMA, _RC = "mma.sync.aligned.m16n8k", ".row.col."
_SPACE = "{space:|.global|.shared|.shared::cta}"
_SHAPE = "m16n16k16"
_LAYOUTS = "{la:row|col}.{lb:row|col}"
_MEMORY = f"sync.aligned.{{layout:row|col}}.{_SHAPE}{_SPACE}"
_EIGHTS = "ldmatrix.sync.aligned.m8n8.x{x:1|2|4}{trans:|.trans}{space:.shared|.shared::cta}.b16"

FORMS = (
    Form(_EIGHTS, "={} []", _ldmatrix, "load", raw=True, sync=True),
    Form("movmatrix.sync.aligned.m8n8.trans.b16", "=b32 b32", _movmatrix, "collective", raw=True, sync=True),
    _product(f"{_MMA}{{k:8|16}}{_RC}{{d:f32}}.{{a:f16}}.{{b:f16}}.{{c:f32}}"),
    _product(f"{_MMA}{{k:8|16}}{_RC}{{d:f16}}.{{a:f16}}.{{b:f16}}.{{c:f16}}"),
    _product(f"{_MMA}{{k:8|16}}{_RC}{{d:f32}}.{{a:bf16}}.{{b:bf16}}.{{c:f32}}"),
    _product(f"{_MMA}{{k:4|8}}{_RC}{{d:f32}}.{{a:tf32}}.{{b:tf32}}.{{c:f32}}"),
    _product(f"{_MMA}{{k:16|32}}{_RC}{{d:s32}}.{{a:s8|u8}}.{{b:s8|u8}}.{{c:s32}}"),
    _product(f"wmma.mma.sync.aligned.{_LAYOUTS}.{_SHAPE}.{{d:f16|f32}}.{{c:f16|f32}}", _wmma),
    _product(f"wmma.mma.sync.aligned.{_LAYOUTS}.{_SHAPE}.{{d:f32}}.{{ab:bf16}}.bf16.{{c:f32}}", _wmma),
    Form(f"wmma.{{op:load}}.{{what:a|b}}.{_MEMORY}.{{t:f16|bf16}}", "={} [] b32?", _wmma_load, "load", raw=True),
    Form(f"wmma.{{op:load}}.{{what:c}}.{_MEMORY}.{{t:f16|f32}}", "={} [] b32?", _wmma_load, "load", raw=True),
    Form(f"wmma.{{op:store}}.d.{_MEMORY}.{{t:f16|f32}}", "[] {} b32?", _wmma_store, "store", raw=True),
)
