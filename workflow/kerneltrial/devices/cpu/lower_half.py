"""Arithmetic, comparison and approximate functions of f16, bf16 and packed pairs of them.

PTX rounds to nearest even, once; NaN results are the canonical 0x7fff. ex2.approx and tanh.approx are documented within
2^-9.9 (f16) and 2^-7 (bf16) relative, and 2^-10.987 (f16) and 2^-8 (bf16) absolute; they are computed in double and
rounded once here, which lies inside.
"""

from kerneltrial.devices.cpu import half
from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.ir import Body
from kerneltrial.devices.cpu.lower_float import COMPARE, extreme, tiny, two_sum
from kerneltrial.devices.cpu.lower_integer import combine
from kerneltrial.devices.cpu.lower_special import power_of_two

Fields = dict[str, str]


def _elements(b: Body, f: Fields, function: "object", *values: str) -> str:
    """`function(t, *patterns)` on each element, operands flushed before and the result finished after.

    It gives a pattern, or one with whether the exact result is tiny.
    """
    assert callable(function)
    t = half.scalar(f["t"])

    def one(*patterns: str) -> str:
        ready = [half.flush(b, t, p) for p in patterns] if f.get("ftz") else list(patterns)
        made = function(t, *ready)
        result, is_tiny = made if isinstance(made, tuple) else (made, "")
        return half.finished(b, f, t, result, is_tiny)

    return half.each(b, f["t"], one, *values)


def _sum(b: Body, word: str, t: str, x: str, y: str) -> str:
    """Where it is tiny it is exact, being a multiple of the smallest subnormal number."""
    return half.narrow(b, t, b.op(f"{word} float {half.widen(b, t, x)}, {half.widen(b, t, y)}"))


def _add(b: Body, f: Fields, x: str, y: str) -> str:
    return _elements(b, f, lambda t, p, q: _sum(b, "fadd", t, p, q), x, y)


def _sub(b: Body, f: Fields, x: str, y: str) -> str:
    return _elements(b, f, lambda t, p, q: _sum(b, "fsub", t, p, q), x, y)


def _doubles(b: Body, t: str, *patterns: str) -> list[str]:
    return [b.op(f"fpext float {half.widen(b, t, p)} to double") for p in patterns]


def _product(b: Body, f: Fields, t: str, x: str, y: str) -> tuple[str, str]:
    """Exact in float for f16; a product of bf16 may be below the smallest float, and is exact in double."""
    if t == "f16" and not f.get("ftz"):
        return _sum(b, "fmul", t, x, y), ""
    wide = _doubles(b, t, x, y)
    product = b.op(f"fmul double {wide[0]}, {wide[1]}")
    is_tiny = tiny(b, t, product) if f.get("ftz") else ""
    return half.narrow(b, t, half.to_odd(b, product)), is_tiny


def _mul(b: Body, f: Fields, x: str, y: str) -> str:
    return _elements(b, f, lambda t, p, q: _product(b, f, t, p, q), x, y)


def _fused(b: Body, f: Fields, t: str, x: str, y: str, z: str) -> tuple[str, str]:
    """x * y is exact in double; its sum with z is a double and the error of that sum (Knuth)."""
    wide = _doubles(b, t, x, y, z)
    total, error = two_sum(b, b.op(f"fmul double {wide[0]}, {wide[1]}"), wide[2])
    is_tiny = tiny(b, t, total, error) if f.get("ftz") else ""
    return half.narrow(b, t, half.to_odd(b, total, error)), is_tiny


def _fma(b: Body, f: Fields, x: str, y: str, z: str) -> str:
    return _elements(b, f, lambda t, p, q, r: _fused(b, f, t, p, q, r), x, y, z)


def _abs(b: Body, f: Fields, x: str) -> str:
    return _elements(b, f, lambda t, p: half.canonical(b, t, b.op(f"and i16 {p}, {0x7FFF}")), x)


def _neg(b: Body, f: Fields, x: str) -> str:
    return _elements(b, f, lambda t, p: half.canonical(b, t, b.op(f"xor i16 {p}, {-0x8000}")), x)


def _extreme(b: Body, f: Fields, x: str, y: str) -> str:
    """-0 below +0; one NaN gives the other operand, or NaN where the instruction has .NaN."""

    def one(t: str, p: str, q: str) -> str:
        return half.narrow(b, t, extreme(b, "float", f, half.widen(b, t, p), half.widen(b, t, q)))

    return _elements(b, f, one, x, y)


def _compare(b: Body, f: Fields, t: str, p: str, q: str) -> str:
    if f.get("ftz"):
        p, q = half.flush(b, t, p), half.flush(b, t, q)
    return b.op(f"fcmp {COMPARE[f['cmp']]} float {half.widen(b, t, p)}, {half.widen(b, t, q)}")


def _setp(b: Body, f: Fields, x: str, y: str, third: str = "") -> tuple[str, str]:
    """Of scalars the comparison and its opposite; of pairs that of the lower and that of the upper elements."""
    if not f["t"].endswith("x2"):
        return combine(b, f, _compare(b, f, f["t"], x, y), third)
    pairs = zip(half.halves(b, x), half.halves(b, y), strict=True)
    first, second = (_compare(b, f, half.scalar(f["t"]), p, q) for p, q in pairs)
    if not f["bool"]:
        return first, second
    word = f["bool"][1:]
    return b.op(f"{word} i1 {first}, {third}"), b.op(f"{word} i1 {second}, {third}")


def _set(b: Body, f: Fields, x: str, y: str) -> str:
    """1.0 as f16 or bf16, all ones as an integer; of pairs one for each element."""
    t, d = half.scalar(f["t"]), half.scalar(f["d"])
    true = half.ONE.get(d, -1)

    def one(p: str, q: str) -> str:
        return b.op(f"select i1 {_compare(b, f, t, p, q)}, i16 {true}, i16 0")

    if f["t"].endswith("x2") or d in ("f16", "bf16", "u16", "s16"):
        return half.each(b, f["t"], one, x, y)
    return b.op(f"sext i1 {_compare(b, f, t, x, y)} to i32")


def _approximate(b: Body, f: Fields, x: str) -> str:
    def one(t: str, p: str) -> str:
        wide = _doubles(b, t, p)[0]
        exact = power_of_two(b, wide) if f["op"] == "ex2" else b.call("double", "tanh", ("double", wide))
        return half.narrow(b, t, half.to_odd(b, exact))

    return _elements(b, f, one, x)


_G = "fp16"
_F16, _BF16 = "{t:f16|f16x2}", "{t:bf16|bf16x2}"
_FTZ, _SAT, _RN, _NAN = "{ftz:|.ftz}", "{sat:|.sat}", "{rnd:|.rn}", "{nan:|.NaN}"
_CMP = "{cmp:" + "|".join(COMPARE) + "}"
_BOOL = "{bool:.and|.or|.xor}"
_ARITHMETIC = (("add", _add), ("sub", _sub), ("mul", _mul))

FORMS = (
    *(Form(f"{op}{_RN}{_FTZ}{_SAT}.{_F16}", "=t t t", lower, _G) for op, lower in _ARITHMETIC),
    *(Form(f"{op}{_RN}.{_BF16}", "=t t t", lower, _G) for op, lower in _ARITHMETIC),
    Form(f"fma.rn{_FTZ}{_SAT}.{_F16}", "=t t t t", _fma, _G),
    Form(f"fma.rn{_FTZ}{{relu:.relu}}.{_F16}", "=t t t t", _fma, _G),
    Form(f"fma.rn{{relu:|.relu}}.{_BF16}", "=t t t t", _fma, _G),
    Form(f"abs{_FTZ}.{_F16}", "=t t", _abs, _G),
    Form(f"abs.{_BF16}", "=t t", _abs, _G),
    Form(f"neg{_FTZ}.{_F16}", "=t t", _neg, _G),
    Form(f"neg.{_BF16}", "=t t", _neg, _G),
    *(Form(f"{{op:{op}}}{_FTZ}{_NAN}.{_F16}", "=t t t", _extreme, _G) for op in ("min", "max")),
    *(Form(f"{{op:{op}}}{_NAN}.{_BF16}", "=t t t", _extreme, _G) for op in ("min", "max")),
    Form(f"setp.{_CMP}{{bool:}}{_FTZ}.{{t:f16}}", "=pred t t", _setp, _G),
    Form(f"setp.{_CMP}{_BOOL}{_FTZ}.{{t:f16}}", "=pred t t pred", _setp, _G),
    Form(f"setp.{_CMP}{{bool:}}{_FTZ}.{{t:f16x2}}", "=pred|pred t t", _setp, _G),
    Form(f"setp.{_CMP}{_BOOL}{_FTZ}.{{t:f16x2}}", "=pred|pred t t pred", _setp, _G),
    Form(f"setp.{_CMP}{{bool:}}.{{t:bf16}}", "=pred t t", _setp, _G),
    Form(f"setp.{_CMP}{_BOOL}.{{t:bf16}}", "=pred t t pred", _setp, _G),
    Form(f"setp.{_CMP}{{bool:}}.{{t:bf16x2}}", "=pred|pred t t", _setp, _G),
    Form(f"setp.{_CMP}{_BOOL}.{{t:bf16x2}}", "=pred|pred t t pred", _setp, _G),
    Form(f"set.{_CMP}{_FTZ}.{{d:f16|u16|s16|u32|s32}}.{{t:f16}}", "=d t t", _set, _G),
    Form(f"set.{_CMP}{_FTZ}.{{d:f16x2|u32|s32}}.{{t:f16x2}}", "=d t t", _set, _G),
    Form(f"set.{_CMP}.{{d:bf16|u16|s16|u32|s32}}.{{t:bf16}}", "=d t t", _set, _G),
    Form(f"set.{_CMP}.{{d:bf16x2|u32|s32}}.{{t:bf16x2}}", "=d t t", _set, _G),
    Form(f"{{op:ex2}}.approx.{_F16}", "=t t", _approximate, "special"),
    Form(f"{{op:ex2}}.approx{{ftz:.ftz}}.{_BF16}", "=t t", _approximate, "special"),
    Form("{op:tanh}.approx.{t:f16|f16x2|bf16|bf16x2}", "=t t", _approximate, "special"),
)
