"""Arithmetic of f32 and f64 that IEEE 754 defines, rounded to nearest even, with .ftz and .sat; comparisons.

LLVM is given no fast-math flags, so nothing is contracted or reassociated. A NaN result of f32 arithmetic is the
canonical 0x7fffffff on the GPU; `Form.nan` marks these instructions, and the generator makes the NaN canonical where
its bits are looked at (see `flow.Flow.pure`).
"""

import struct

from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.ir import Body
from kerneltrial.devices.cpu.lower_integer import combine, set_value

Fields = dict[str, str]
LLVM = {"f32": "float", "f64": "double"}
"""The types whose values are floats in LLVM; f16 and bf16 are handled as 16-bit patterns (see `half`)."""


def real(value: float) -> str:
    """A double as an LLVM constant."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def flush(b: Body, x: str) -> str:
    """A subnormal float becomes zero of the same sign."""
    bits = b.op(f"bitcast float {x} to i32")
    exponent = b.op(f"and i32 {bits}, {0x7F800000}")
    sign = b.op(f"and i32 {bits}, {-0x80000000}")
    small = b.op(f"icmp eq i32 {exponent}, 0")
    return b.op(f"bitcast i32 {b.op(f'select i1 {small}, i32 {sign}, i32 {bits}')} to float")


def canonical_nan(b: Body, bits: str, lanes: int = 1) -> str:
    """The bits of an f32 result, or of a vector of `lanes`, with every NaN made 0x7fffffff.

    In integers throughout: LLVM takes all NaNs for equal, and drops a choice between two of them.
    """
    type_, flag = ("i32", "i1") if lanes == 1 else (f"<{lanes} x i32>", f"<{lanes} x i1>")
    canonical, infinity = (str(value) if lanes == 1 else f"splat (i32 {value})" for value in (0x7FFFFFFF, 0x7F800000))
    size = b.op(f"and {type_} {bits}, {canonical}")
    return b.op(f"select {flag} {b.op(f'icmp ugt {type_} {size}, {infinity}')}, {type_} {canonical}, {type_} {bits}")


def inputs(b: Body, f: Fields, *values: str) -> list[str]:
    """Operands, flushed where the instruction has .ftz."""
    return [flush(b, v) for v in values] if f.get("ftz") else list(values)


NORMAL = {"f32": 2.0**-126, "f16": 2.0**-14}
"""The smallest normal numbers."""


def tiny(b: Body, t: str, total: str, error: str = "") -> str:
    """Whether the exact result `total` + `error` (doubles) lies below the normal numbers of `t`.

    An H200 decides so about .ftz, before rounding: what rounding would lift to the smallest normal number is flushed.
    """
    least = real(NORMAL[t])
    size = b.call("double", "llvm.fabs.f64", ("double", total))
    below = b.op(f"fcmp olt double {size}, {least}")
    if not error:
        return below
    inward = b.op(f"fcmp olt double {b.op(f'fmul double {total}, {error}')}, 0.0")
    at_least = b.op(f"fcmp oeq double {size}, {least}")
    return b.op(f"or i1 {below}, {b.op(f'and i1 {inward}, {at_least}')}")


def two_sum(b: Body, x: str, y: str) -> tuple[str, str]:
    """x + y (doubles) rounded, and what the rounding lost: together the exact sum (Knuth, where nothing overflows)."""
    total = b.op(f"fadd double {x}, {y}")
    part = b.op(f"fsub double {total}, {x}")
    rest = b.op(f"fsub double {x}, {b.op(f'fsub double {total}, {part}')}")
    return total, b.op(f"fadd double {rest}, {b.op(f'fsub double {y}, {part}')}")


def wide(b: Body, *values: str) -> list[str]:
    """Floats as doubles."""
    return [b.op(f"fpext float {v} to double") for v in values]


def output(b: Body, f: Fields, value: str, is_tiny: str = "") -> str:
    """A result, flushed and saturated where the instruction asks for it. NaN saturates to +0.

    `is_tiny` (an i1) is `tiny` of the exact result, where rounding may hide that.
    """
    if f.get("ftz"):
        value = flush(b, value)
    if f.get("ftz") and is_tiny:
        zero = b.call("float", "llvm.copysign.f32", ("float", "0.0"), ("float", value))
        value = b.op(f"select i1 {is_tiny}, float {zero}, float {value}")
    if f.get("sat"):
        type_ = LLVM[f.get("t") or "f32"]
        above = b.op(f"fcmp ogt {type_} {value}, 0.0")
        value = b.op(f"select i1 {above}, {type_} {value}, {type_} 0.0")
        below = b.op(f"fcmp olt {type_} {value}, 1.0")
        value = b.op(f"select i1 {below}, {type_} {value}, {type_} 1.0")
    return value


def _binary(b: Body, f: Fields, x: str, y: str) -> str:
    x, y = inputs(b, f, x, y)
    result = b.op(f"f{f['op']} {LLVM[f['t']]} {x}, {y}")
    return output(b, f, result, tiny_binary(b, f, x, y) if f.get("ftz") else "")


def tiny_binary(b: Body, f: Fields, x: str, y: str) -> str:
    """Whether a product or quotient of floats is `tiny`; a sum that is tiny is exact, and needs no look."""
    first, second = wide(b, x, y)
    if f["op"] == "mul":
        return tiny(b, "f32", b.op(f"fmul double {first}, {second}"))
    if f["op"] != "div":
        return ""
    least = real(NORMAL["f32"])
    size, divisor = (b.call("double", "llvm.fabs.f64", ("double", v)) for v in (first, second))
    return b.op(f"fcmp olt double {size}, {b.op(f'fmul double {divisor}, {least}')}")


def tiny_fused(b: Body, x: str, y: str, z: str) -> str:
    """Whether x * y + z of floats is `tiny`."""
    first, second, third = wide(b, x, y, z)
    return tiny(b, "f32", *two_sum(b, b.op(f"fmul double {first}, {second}"), third))


def fused_multiply_add(b: Body, f: Fields, x: str, y: str, z: str) -> str:
    x, y, z = inputs(b, f, x, y, z)
    type_ = LLVM[f["t"]]
    result = b.call(type_, f"llvm.fma.{f['t']}", (type_, x), (type_, y), (type_, z))
    return output(b, f, result, tiny_fused(b, x, y, z) if f.get("ftz") else "")


def _unary(name: str) -> "object":
    def lower(b: Body, f: Fields, x: str) -> str:
        (x,) = inputs(b, f, x)
        type_ = LLVM[f["t"]]
        return output(b, f, b.call(type_, f"llvm.{name}.{f['t']}", (type_, x)))

    return lower


def _reciprocal(b: Body, f: Fields, x: str) -> str:
    (x,) = inputs(b, f, x)
    return output(b, f, b.op(f"fdiv {LLVM[f['t']]} 1.0, {x}"))


def _negate(b: Body, f: Fields, x: str) -> str:
    (x,) = inputs(b, f, x)
    return b.op(f"fneg {LLVM[f['t']]} {x}")


def extreme(b: Body, type_: str, f: Fields, x: str, y: str) -> str:
    """IEEE 754-2019 minimumNumber, maximumNumber (-0 below +0) of two floats of LLVM; with .NaN a NaN operand wins.

    Written out: for AVX-512, LLVM 22 makes code of llvm.minimumnum that gives a NaN where one operand is a NaN and the
    other is known to be none.
    """
    smaller = f["op"] == "min"
    word = "i32" if type_ == "float" else "i64"
    first = b.op(f"fcmp {'olt' if smaller else 'ogt'} {type_} {x}, {y}")
    chosen = b.op(f"select i1 {first}, {type_} {x}, {type_} {y}")
    bits = [b.op(f"bitcast {type_} {value} to {word}") for value in (x, y)]
    both = b.op(f"{'or' if smaller else 'and'} {word} {bits[0]}, {bits[1]}")  # of equal ones, zeros alone differ
    equal = b.op(f"fcmp oeq {type_} {x}, {y}")
    chosen = b.op(f"select i1 {equal}, {type_} {b.op(f'bitcast {word} {both} to {type_}')}, {type_} {chosen}")
    # a comparison with NaN is false and chose y
    nan, instead = (x, x) if f.get("nan") else (y, x)
    return b.op(f"select i1 {b.op(f'fcmp uno {type_} {nan}, {nan}')}, {type_} {instead}, {type_} {chosen}")


def _extreme(b: Body, f: Fields, x: str, y: str) -> str:
    x, y = inputs(b, f, x, y)
    return output(b, f, extreme(b, LLVM[f["t"]], f, x, y))


def _copysign(b: Body, f: Fields, sign: str, magnitude: str) -> str:
    type_ = LLVM[f["t"]]
    return b.call(type_, f"llvm.copysign.{f['t']}", (type_, magnitude), (type_, sign))


_ORDERED = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "num": "ord"}
_UNORDERED = {"equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "nan": "uno"}
COMPARE = {**_ORDERED, **_UNORDERED}


def _setp(b: Body, f: Fields, x: str, y: str, third: str = "") -> tuple[str, str]:
    return combine(b, f, _compare(b, f, x, y), third)


def _compare(b: Body, f: Fields, x: str, y: str) -> str:
    x, y = inputs(b, f, x, y)
    return b.op(f"fcmp {COMPARE[f['cmp']]} {LLVM[f['t']]} {x}, {y}")


def _set(b: Body, f: Fields, x: str, y: str) -> str:
    return set_value(b, f, _compare(b, f, x, y))


_CLASSES = {
    "finite": 0x1F8,
    "infinite": 0x204,
    "number": 0x3FC,
    "notanumber": 0x003,
    "normal": 0x168,
    "subnormal": 0x090,
}
"""Bits of llvm.is.fpclass; `number` is all but NaN, and zeros are `normal` on an H200."""


def _testp(b: Body, f: Fields, x: str) -> str:
    return b.call("i1", f"llvm.is.fpclass.{f['t']}", (LLVM[f["t"]], x), ("i32", _CLASSES[f["what"]]))


_S, _D = "fp32", "fp64"
_RN, _FTZ, _SAT = "{rnd:|.rn}", "{ftz:|.ftz}", "{sat:|.sat}"
_CMP = "{cmp:" + "|".join(COMPARE) + "}"
_WHAT = "{what:" + "|".join(_CLASSES) + "}"
_BOOL = "{bool:.and|.or|.xor}"

FORMS = (
    *(Form(f"{{op:{op}}}{_RN}{_FTZ}{_SAT}.{{t:f32}}", "=t t t", _binary, _S, nan=True) for op in ("add", "sub", "mul")),
    *(Form(f"{{op:{op}}}{_RN}.{{t:f64}}", "=t t t", _binary, _D) for op in ("add", "sub", "mul")),
    Form(f"fma.rn{_FTZ}{_SAT}.{{t:f32}}", "=t t t t", fused_multiply_add, _S, nan=True),
    Form(f"mad.rn{_FTZ}{_SAT}.{{t:f32}}", "=t t t t", fused_multiply_add, _S, nan=True),
    Form("fma.rn.{t:f64}", "=t t t t", fused_multiply_add, _D),
    Form("mad.rn.{t:f64}", "=t t t t", fused_multiply_add, _D),
    Form(f"{{op:div}}.rn{_FTZ}.{{t:f32}}", "=t t t", _binary, _S, nan=True),
    Form("{op:div}.rn.{t:f64}", "=t t t", _binary, _D),
    Form(f"rcp.rn{_FTZ}.{{t:f32}}", "=t t", _reciprocal, _S, nan=True),
    Form("rcp.rn.{t:f64}", "=t t", _reciprocal, _D),
    Form(f"sqrt.rn{_FTZ}.{{t:f32}}", "=t t", _unary("sqrt"), _S, nan=True),  # type: ignore[arg-type]
    Form("sqrt.rn.{t:f64}", "=t t", _unary("sqrt"), _D),  # type: ignore[arg-type]
    Form(f"abs{_FTZ}.{{t:f32}}", "=t t", _unary("fabs"), _S, nan=True),  # type: ignore[arg-type]
    Form("abs.{t:f64}", "=t t", _unary("fabs"), _D),  # type: ignore[arg-type]
    Form(f"neg{_FTZ}.{{t:f32}}", "=t t", _negate, _S, nan=True),
    Form("neg.{t:f64}", "=t t", _negate, _D),
    *(Form(f"{{op:{op}}}{_FTZ}{{nan:|.NaN}}.{{t:f32}}", "=t t t", _extreme, _S, nan=True) for op in ("min", "max")),
    *(Form(f"{{op:{op}}}.{{t:f64}}", "=t t t", _extreme, _D) for op in ("min", "max")),
    Form("copysign.{t:f32}", "=t t t", _copysign, _S),
    Form("copysign.{t:f64}", "=t t t", _copysign, _D),
    Form(f"setp.{_CMP}{{bool:}}{_FTZ}.{{t:f32}}", "=pred|pred t t", _setp, _S),
    Form(f"setp.{_CMP}{_BOOL}{_FTZ}.{{t:f32}}", "=pred|pred t t pred", _setp, _S),
    Form(f"setp.{_CMP}{{bool:}}.{{t:f64}}", "=pred|pred t t", _setp, _D),
    Form(f"setp.{_CMP}{_BOOL}.{{t:f64}}", "=pred|pred t t pred", _setp, _D),
    Form(f"set.{_CMP}{_FTZ}.{{d:u32|s32|f32}}.{{t:f32}}", "=d t t", _set, _S),
    Form(f"set.{_CMP}.{{d:u32|s32|f32}}.{{t:f64}}", "=d t t", _set, _D),
    Form(f"testp.{_WHAT}.{{t:f32}}", "=pred t", _testp, _S),
    Form(f"testp.{_WHAT}.{{t:f64}}", "=pred t", _testp, _D),
)
