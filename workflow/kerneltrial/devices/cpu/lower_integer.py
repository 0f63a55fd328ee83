"""Integer arithmetic, comparison and selection. Values are LLVM integers of the type's width."""

from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.ir import Body
from kerneltrial.devices.cpu.syntax import WIDTHS

Fields = dict[str, str]
_ALL = "u16|s16|u32|s32|u64|s64"


def _width(fields: Fields) -> int:
    return WIDTHS[fields["t"]]


def _signed(fields: Fields) -> bool:
    return fields["t"][0] == "s"


def _widen(b: Body, fields: Fields, value: str, to: int) -> str:
    return b.op(f"{'sext' if _signed(fields) else 'zext'} i{_width(fields)} {value} to i{to}")


def _add(b: Body, f: Fields, x: str, y: str) -> str:
    return b.op(f"add i{_width(f)} {x}, {y}")


def _sub(b: Body, f: Fields, x: str, y: str) -> str:
    return b.op(f"sub i{_width(f)} {x}, {y}")


def _saturating(name: str) -> "object":
    def lower(b: Body, _: Fields, x: str, y: str) -> str:
        return b.call("i32", f"llvm.{name}.sat.i32", ("i32", x), ("i32", y))

    return lower


def _multiply(b: Body, f: Fields, x: str, y: str) -> str:
    """The low half, the high half, or all of the product."""
    w = _width(f)
    if f["half"] == ".lo":
        return b.op(f"mul i{w} {x}, {y}")
    product = b.op(f"mul i{2 * w} {_widen(b, f, x, 2 * w)}, {_widen(b, f, y, 2 * w)}")
    if f["half"] == ".wide":
        return product
    return b.op(f"trunc i{2 * w} {b.op(f'lshr i{2 * w} {product}, {w}')} to i{w}")


def _multiply_add(b: Body, f: Fields, x: str, y: str, z: str) -> str:
    w = _width(f) * (2 if f["half"] == ".wide" else 1)
    return b.op(f"add i{w} {_multiply(b, f, x, y)}, {z}")


def _mul24(b: Body, f: Fields, x: str, y: str) -> str:
    """Bits 0 to 31, or 16 to 47, of the product of the low 24 bits."""
    parts = []
    for value in (x, y):
        up = b.op(f"shl i32 {value}, 8")
        parts.append(b.op(f"{'ashr' if _signed(f) else 'lshr'} i32 {up}, 8"))
    if f.get("half") == "hi":
        wide = [b.op(f"{'sext' if _signed(f) else 'zext'} i32 {part} to i64") for part in parts]
        product = b.op(f"mul i64 {wide[0]}, {wide[1]}")
        return b.op(f"trunc i64 {b.op(f'lshr i64 {product}, 16')} to i32")
    return b.op(f"mul i32 {parts[0]}, {parts[1]}")


def _mad_saturating(b: Body, _: Fields, x: str, y: str, z: str) -> str:
    high = _multiply(b, {"t": "s32", "half": ".hi"}, x, y)
    return b.call("i32", "llvm.sadd.sat.i32", ("i32", high), ("i32", z))


def _mad24(b: Body, f: Fields, x: str, y: str, z: str) -> str:
    return b.op(f"add i32 {_mul24(b, f, x, y)}, {z}")


def _divide(b: Body, f: Fields, x: str, y: str) -> str:
    """Quotient or remainder. By zero (PTX leaves it open) both are all ones, as an H200 has it; the smallest integer
    by -1 wraps. No host trap can come of it."""
    w, signed = _width(f), _signed(f)
    zero = b.op(f"icmp eq i{w} {y}, 0")
    bad = zero
    if signed:
        low = b.op(f"icmp eq i{w} {x}, {-(1 << (w - 1))}")
        overflow = b.op(f"and i1 {low}, {b.op(f'icmp eq i{w} {y}, -1')}")
        bad = b.op(f"or i1 {zero}, {overflow}")
    safe = b.op(f"select i1 {bad}, i{w} 1, i{w} {y}")
    prefix = "s" if signed else "u"
    result = b.op(f"{prefix}{f['op']} i{w} {x}, {safe}")
    return b.op(f"select i1 {zero}, i{w} -1, i{w} {result}")


def _extreme(b: Body, f: Fields, x: str, y: str) -> str:
    w = _width(f)
    name = f"llvm.{'s' if _signed(f) else 'u'}{f['op']}.i{w}"
    return b.call(f"i{w}", name, (f"i{w}", x), (f"i{w}", y))


def _negate(b: Body, f: Fields, x: str) -> str:
    return b.op(f"sub i{_width(f)} 0, {x}")


def _absolute(b: Body, f: Fields, x: str) -> str:
    w = _width(f)
    return b.call(f"i{w}", f"llvm.abs.i{w}", (f"i{w}", x), ("i1", "false"))


def _sad(b: Body, f: Fields, x: str, y: str, z: str) -> str:
    """z + |x - y|."""
    w = _width(f)
    sign = "s" if _signed(f) else "u"
    more = b.op(f"icmp {sign}gt i{w} {x}, {y}")
    one, other = b.op(f"sub i{w} {x}, {y}"), b.op(f"sub i{w} {y}, {x}")
    return b.op(f"add i{w} {z}, {b.op(f'select i1 {more}, i{w} {one}, i{w} {other}')}")


_COMPARE = {
    "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
    "lo": "lt", "ls": "le", "hi": "gt", "hs": "ge",
}  # fmt: skip


def compare(b: Body, f: Fields, x: str, y: str) -> str:
    """A comparison of integers as i1."""
    word = _COMPARE[f["cmp"]]
    unsigned = f["cmp"] in ("lo", "ls", "hi", "hs") or not _signed(f)
    prefix = "" if word in ("eq", "ne") else "u" if unsigned else "s"
    return b.op(f"icmp {prefix}{word} i{_width(f)} {x}, {y}")


def combine(b: Body, f: Fields, result: str, third: str) -> tuple[str, str]:
    """The two predicates of a setp: (result op third) and (not result op third)."""
    opposite = b.op(f"xor i1 {result}, true")
    if not f["bool"]:
        return result, opposite
    word = f["bool"][1:]
    return b.op(f"{word} i1 {result}, {third}"), b.op(f"{word} i1 {opposite}, {third}")


def _setp(b: Body, f: Fields, x: str, y: str, third: str = "") -> tuple[str, str]:
    return combine(b, f, compare(b, f, x, y), third)


def set_value(b: Body, f: Fields, result: str) -> str:
    """What `set` writes for true: all ones as an integer, 1.0 as a float."""
    if f["d"] == "f32":
        return b.op(f"select i1 {result}, float 1.0, float 0.0")
    return b.op(f"sext i1 {result} to i32")


def _set(b: Body, f: Fields, x: str, y: str) -> str:
    return set_value(b, f, compare(b, f, x, y))


_G = "integer"
_BOOLS = ".and|.or|.xor"

FORMS = (
    Form(f"add.{{t:{_ALL}}}", "=t t t", _add, _G),
    Form(f"sub.{{t:{_ALL}}}", "=t t t", _sub, _G),
    Form("add.sat.s32", "=s32 s32 s32", _saturating("sadd"), _G),  # type: ignore[arg-type]
    Form("sub.sat.s32", "=s32 s32 s32", _saturating("ssub"), _G),  # type: ignore[arg-type]
    Form(f"mul{{half:.lo|.hi}}.{{t:{_ALL}}}", "=t t t", _multiply, _G),
    Form("mul{half:.wide}.{t:u16|s16}", "=b32 t t", _multiply, _G),
    Form("mul{half:.wide}.{t:u32|s32}", "=b64 t t", _multiply, _G),
    Form(f"mad{{half:.lo|.hi}}.{{t:{_ALL}}}", "=t t t t", _multiply_add, _G),
    Form("mad{half:.wide}.{t:u16|s16}", "=b32 t t b32", _multiply_add, _G),
    Form("mad{half:.wide}.{t:u32|s32}", "=b64 t t b64", _multiply_add, _G),
    Form("mad.hi.sat.s32", "=s32 s32 s32 s32", _mad_saturating, _G),
    Form("mul24.{half:hi}.{t:u32|s32}", "=t t t", _mul24, _G),
    Form("mad24.{half:hi}.{t:u32|s32}", "=t t t t", _mad24, _G),
    Form("mul24.lo.{t:u32|s32}", "=t t t", _mul24, _G),
    Form("mad24.lo.{t:u32|s32}", "=t t t t", _mad24, _G),
    Form(f"{{op:div}}.{{t:{_ALL}}}", "=t t t", _divide, _G),
    Form(f"{{op:rem}}.{{t:{_ALL}}}", "=t t t", _divide, _G),
    Form(f"{{op:min}}.{{t:{_ALL}}}", "=t t t", _extreme, _G),
    Form(f"{{op:max}}.{{t:{_ALL}}}", "=t t t", _extreme, _G),
    Form("neg.{t:s16|s32|s64}", "=t t", _negate, _G),
    Form("abs.{t:s16|s32|s64}", "=t t", _absolute, _G),
    Form(f"sad.{{t:{_ALL}}}", "=t t t t", _sad, _G),
    Form("setp.{cmp:eq|ne}{bool:}.{t:b16|b32|b64}", "=pred|pred t t", _setp, _G),
    Form(f"setp.{{cmp:eq|ne}}{{bool:{_BOOLS}}}.{{t:b16|b32|b64}}", "=pred|pred t t pred", _setp, _G),
    Form("setp.{cmp:eq|ne|lt|le|gt|ge}{bool:}.{t:s16|s32|s64}", "=pred|pred t t", _setp, _G),
    Form(f"setp.{{cmp:eq|ne|lt|le|gt|ge}}{{bool:{_BOOLS}}}.{{t:s16|s32|s64}}", "=pred|pred t t pred", _setp, _G),
    Form("setp.{cmp:eq|ne|lt|le|gt|ge|lo|ls|hi|hs}{bool:}.{t:u16|u32|u64}", "=pred|pred t t", _setp, _G),
    Form(
        f"setp.{{cmp:eq|ne|lt|le|gt|ge|lo|ls|hi|hs}}{{bool:{_BOOLS}}}.{{t:u16|u32|u64}}",
        "=pred|pred t t pred",
        _setp,
        _G,
    ),
    Form("set.{cmp:eq|ne}.{d:u32|s32|f32}.{t:b16|b32|b64}", "=d t t", _set, _G),
    Form("set.{cmp:eq|ne|lt|le|gt|ge}.{d:u32|s32|f32}.{t:s16|s32|s64}", "=d t t", _set, _G),
    Form("set.{cmp:eq|ne|lt|le|gt|ge|lo|ls|hi|hs}.{d:u32|s32|f32}.{t:u16|u32|u64}", "=d t t", _set, _G),
)
