"""Products of small matrices as a warp makes them (mma.sync, wmma), as LLVM IR.

A card adds the products of one mma in an order and with a precision that PTX leaves open. Here each product is exact,
the sum over k is made in double in the order of k, the accumulator is added last, and the result is rounded once. A
card is within 2^-20 of the sum of the absolute terms of one mma for f32 accumulators, and half a unit of f16 further
for f16 ones (compared with an H200 in tests/golden/corpus_h200.json). Integer products are exact on both sides.

Fragments lie as PTX has it for m16n8: of a register with `per` elements, lane 4g+t holds row g (or g+8, every second
register) and the elements k = per*t and up, each further pair of registers 4*per elements on.
"""

from dataclasses import dataclass

from kerneltrial.devices.cpu import half
from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.ir import Body

_TF32_BITS = -0x2000
_PER = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4}


@dataclass(frozen=True)
class Product:
    """A 16 x k times k x 8 product of elements of types `a` and `b`."""

    a: str
    b: str
    k: int

    @property
    def symbol(self) -> str:
        return f"kt_mma_{self.a}_{self.b}_{self.k}"

    @property
    def per(self) -> int:
        """Elements in a register."""
        return _PER[self.a]

    @property
    def a_words(self) -> int:
        return self.k // (2 * self.per)

    @property
    def b_words(self) -> int:
        return self.a_words // 2

    @property
    def total(self) -> str:
        """The LLVM type of a sum."""
        return "i32" if self.a in ("s8", "u8") else "double"


PRODUCTS = (
    *(Product(t, t, k) for t in ("f16", "bf16") for k in (8, 16)),
    *(Product("tf32", "tf32", k) for k in (4, 8)),
    *(Product(a, b, k) for a in ("s8", "u8") for b in ("s8", "u8") for k in (16, 32)),
)


def function(product: Product) -> tuple[str, Body]:
    """`kt_mma_...(context, stride, a, b, out)`: out[4] are this lane's sums of products, without the accumulator.

    `a` and `b` are where the words of the two fragments begin in a context, `stride` is from one context to the next.
    """
    b = Body()
    lane = b.field("%ctx", at.LANE, "i32")
    wide = b.op(f"sext i32 {lane} to i64")
    back = b.op(f"sub i64 0, {b.op(f'mul i64 {wide}, %stride')}")
    warp = b.op(f"getelementptr i8, ptr %ctx, i64 {back}")
    group, inner = b.op(f"lshr i32 {lane}, 2"), b.op(f"and i32 {lane}, 3")
    rows = [_elements(b, product, product.a, warp, group, "%a", 2, high) for high in (0, 1)]
    columns = []
    for odd in (0, 1):
        column = b.op(f"add i32 {b.op(f'shl i32 {inner}, 1')}, {odd}")
        columns.append(_elements(b, product, product.b, warp, column, "%b", 1, 0))
    letter = "" if product.total == "i32" else "f"
    for place, (row, column_) in enumerate((r, c) for r in rows for c in columns):
        total = ""
        for x, y in zip(row, column_, strict=True):
            term = b.op(f"{letter}mul {product.total} {x}, {y}")
            total = b.op(f"{letter}add {product.total} {total}, {term}") if total else term
        b.do(f"store {product.total} {total}, ptr {b.op(f'getelementptr {product.total}, ptr %out, i64 {place}')}")
    b.do("ret void")
    header = f"define void @{product.symbol}(ptr %ctx, i64 %stride, i64 %a, i64 %b, ptr %out)"
    return b.function(header), b


def _elements(b: Body, product: Product, t: str, warp: str, line: str, start: str, step: int, first: int) -> list[str]:
    """The elements of one row of A (every second register, `step` 2) or of one column of B, in the order of k."""
    words: dict[tuple[int, int], str] = {}
    found = []
    first_lane = b.op(f"sext i32 {b.op(f'shl i32 {line}, 2')} to i64")
    for k in range(product.k):
        register = k // (4 * product.per) * step + first
        inner, sub = k % (4 * product.per) // product.per, k % product.per
        if (register, inner) not in words:
            lane = b.op(f"add i64 {first_lane}, {inner}")
            context = b.op(f"getelementptr i8, ptr {warp}, i64 {b.op(f'mul i64 {lane}, %stride')}")
            fragment = b.op(f"getelementptr i8, ptr {context}, i64 {start}")
            words[register, inner] = b.field(fragment, 4 * register, "i32")
        found.append(_element(b, t, words[register, inner], sub))
    return found


def _element(b: Body, t: str, word: str, sub: int) -> str:
    """Element `sub` of a register: a double, or an i32."""
    if t == "tf32":
        kept = b.op(f"bitcast i32 {b.op(f'and i32 {word}, {_TF32_BITS}')} to float")
        return b.op(f"fpext float {kept} to double")
    bits = 32 // _PER[t]
    part = b.op(f"trunc i32 {b.op(f'lshr i32 {word}, {bits * sub}')} to i{bits}")
    if bits == 8:
        return b.op(f"{'sext' if t == 's8' else 'zext'} i8 {part} to i32")
    return b.op(f"fpext float {half.widen(b, t, part)} to double")
