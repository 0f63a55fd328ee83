"""Conversions. Integer results of floats clamp; a NaN gives 0, or the top bit alone where f64 or 64 bits take part."""

from kerneltrial.devices.cpu import half
from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.ir import Body
from kerneltrial.devices.cpu.lower_float import LLVM, flush, output, tiny
from kerneltrial.devices.cpu.lower_rounding import directed
from kerneltrial.devices.cpu.rounding import rounded
from kerneltrial.devices.cpu.syntax import WIDTHS

Fields = dict[str, str]
_INTEGERS = "u8|s8|u16|s16|u32|s32|u64|s64"
_TO_WHOLE = {".rni": "rint", ".rzi": "trunc", ".rmi": "floor", ".rpi": "ceil"}


def _integer(b: Body, f: Fields, x: str) -> str:
    d, s = f["d"], f["s"]
    to, width = WIDTHS[d], WIDTHS[s]
    signed = s[0] == "s"
    if f["sat"]:
        return _clamped(b, f, x)
    if to == width:
        return x
    word = "trunc" if to < width else "sext" if signed else "zext"
    return b.op(f"{word} i{width} {x} to i{to}")


def _clamped(b: Body, f: Fields, x: str) -> str:
    """Clamped to the destination's range, by way of 66 bits that hold both."""
    d, s = f["d"], f["s"]
    to, width = WIDTHS[d], WIDTHS[s]
    wide = b.op(f"{'sext' if s[0] == 's' else 'zext'} i{width} {x} to i66")
    low, high = (-(1 << (to - 1)), (1 << (to - 1)) - 1) if d[0] == "s" else (0, (1 << to) - 1)
    raised = b.call("i66", "llvm.smax.i66", ("i66", wide), ("i66", low))
    return b.op(f"trunc i66 {b.call('i66', 'llvm.smin.i66', ('i66', raised), ('i66', high))} to i{to}")


def _float_to_integer(b: Body, f: Fields, x: str) -> str:
    s, d = f["s"], f["d"]
    if s == "f16":
        return _float_to_integer(b, {**f, "s": "f32"}, half.widen(b, s, x))
    type_, w = LLVM[s], WIDTHS[d]
    if f.get("ftz"):
        x = flush(b, x)
    whole = b.call(type_, f"llvm.{_TO_WHOLE[f['rnd']]}.{s}", (type_, x))
    result = b.call(f"i{w}", f"llvm.fpto{'s' if d[0] == 's' else 'u'}i.sat.i{w}.{s}", (type_, whole))
    if s == "f64" or w == 64:
        nan = b.op(f"fcmp uno {type_} {x}, {x}")
        result = b.op(f"select i1 {nan}, i{w} {-(1 << (w - 1))}, i{w} {result}")
    return result


def _integer_to_float(b: Body, f: Fields, x: str) -> str:
    word = "sitofp" if f["s"][0] == "s" else "uitofp"
    return b.op(f"{word} i{WIDTHS[f['s']]} {x} to {LLVM[f['d']]}")


def _integer_directed(b: Body, f: Fields, x: str) -> str:
    """At most 32 bits to float: exact in double first."""
    word = "sitofp" if f["s"][0] == "s" else "uitofp"
    exact = b.op(f"{word} i{WIDTHS[f['s']]} {x} to double")
    return directed(b, f["rnd"], exact, "0.0")


def _integer_by_host(b: Body, f: Fields, x: str) -> str:
    return rounded(b, "sitofp" if f["s"][0] == "s" else "uitofp", f["d"], f["rnd"], x)


def _extend(b: Body, f: Fields, x: str) -> str:
    if f["ftz"]:
        x = flush(b, x)
    return output(b, {"t": "f64", "sat": f["sat"]}, b.op(f"fpext float {x} to double"))


def _quiet(b: Body, x: str, width: int, fraction: int) -> tuple[str, str]:
    """Whether the double `x` is a NaN, and that NaN in a narrower format: its sign and upper payload, quiet."""
    bits = b.op(f"bitcast double {x} to i64")
    size = b.op(f"and i64 {bits}, {(1 << 63) - 1}")
    is_nan = b.op(f"icmp ugt i64 {size}, {0x7FF << 52}")
    narrow = b.op(f"trunc i64 {b.op(f'lshr i64 {bits}, {52 - fraction}')} to i{width}")
    payload = b.op(f"and i{width} {narrow}, {(1 << fraction) - 1}")
    sign = b.op(f"trunc i64 {b.op(f'lshr i64 {bits}, {64 - width}')} to i{width}")
    signed = b.op(f"or i{width} {payload}, {b.op(f'and i{width} {sign}, {-(1 << width - 1)}')}")
    return is_nan, b.op(f"or i{width} {signed}, {(1 << width - 1) - (1 << fraction - 1)}")


def _shorten(b: Body, f: Fields, x: str) -> str:
    nearest = f["rnd"] == ".rn"
    near = b.op(f"fptrunc double {x} to float") if nearest else directed(b, f["rnd"], x, "0.0")
    result = output(b, f, near, tiny(b, "f32", x) if f["ftz"] else "")
    if f["sat"]:
        return result
    is_nan, quiet = _quiet(b, x, 32, 23)
    # in integers, as a NaN's bits count
    bits = b.op(f"bitcast float {result} to i32")
    return b.op(f"bitcast i32 {b.op(f'select i1 {is_nan}, i32 {quiet}, i32 {bits}')} to float")


def _moved(_: Body, f: Fields, x: str) -> str:
    """Without a modifier a NaN keeps its bits."""
    return x


def _same(b: Body, f: Fields, x: str) -> str:
    """A float to the same type: rounded to a whole number, flushed, saturated."""
    t = f["t"]
    if f.get("ftz"):
        x = flush(b, x)
    if f["rnd"]:
        x = b.call(LLVM[t], f"llvm.{_TO_WHOLE[f['rnd']]}.{t}", (LLVM[t], x))
    return output(b, f, x)


def _from_brain(b: Body, f: Fields, x: str) -> str:
    """A NaN keeps its bits."""
    return half.widen(b, f["s"], x)


def _from_half(b: Body, f: Fields, x: str) -> str:
    return output(b, {**f, "t": "f32"}, half.widen(b, f["s"], x))


def _half_to_double(b: Body, f: Fields, x: str) -> str:
    return output(b, {**f, "t": "f64"}, b.op(f"fpext float {half.widen(b, f['s'], x)} to double"))


def _narrowed(b: Body, f: Fields, x: str) -> str:
    """A float (exact, or rounded to odd) to 16 bits."""
    t = half.scalar(f["d"])
    result = half.narrow(b, t, x) if f["rnd"] == ".rn" else half.narrow_directed(b, t, f["rnd"], x)
    return half.finished(b, f, t, result)


def _to_half(b: Body, f: Fields, x: str) -> str:
    return _narrowed(b, f, x)


def _double_to_half(b: Body, f: Fields, x: str) -> str:
    result = _narrowed(b, f, half.to_odd(b, x))
    if f["sat"]:
        return result
    is_nan, quiet = _quiet(b, x, 16, 10)
    return b.op(f"select i1 {is_nan}, i16 {quiet}, i16 {result}")


def _integer_to_half(b: Body, f: Fields, x: str) -> str:
    """Integers that a double does not hold are far beyond every f16, so that their rounding is lost in the overflow."""
    word = "sitofp" if f["s"][0] == "s" else "uitofp"
    return _narrowed(b, f, half.to_odd(b, b.op(f"{word} i{WIDTHS[f['s']]} {x} to double")))


def _two_to_pair(b: Body, f: Fields, upper: str, lower: str) -> str:
    return half.packed(b, _narrowed(b, f, lower), _narrowed(b, f, upper))


def _half_to_whole(b: Body, f: Fields, x: str) -> str:
    """f16 to f16: as it is, or rounded to a whole number, which is exact in float."""
    if not f["rnd"]:
        return half.finished(b, f, "f16", half.canonical(b, "f16", x))
    whole = b.call("float", f"llvm.{_TO_WHOLE[f['rnd']]}.f32", ("float", half.widen(b, "f16", x)))
    return half.finished(b, f, "f16", half.narrow(b, "f16", whole))


def _tf32(b: Body, f: Fields, x: str) -> str:
    """To nearest with 10 bits behind the point, ties away from zero; the 13 low bits are zero, a NaN's too."""
    bits = b.op(f"bitcast float {x} to i32")
    nan = b.op(f"icmp ugt i32 {b.op(f'and i32 {bits}, {0x7FFFFFFF}')}, {0x7F800000}")
    up = b.op(f"and i32 {b.op(f'add i32 {bits}, {0x1000}')}, {-0x2000}")
    return b.op(f"select i1 {nan}, i32 {b.op(f'and i32 {bits}, {-0x2000}')}, i32 {up}")


_G = "convert"
_WHOLE = "{rnd:.rni|.rzi|.rmi|.rpi}"
_FTZ, _SAT = "{ftz:|.ftz}", "{sat:|.sat}"
_DIRECTION = "{rnd:.rn|.rz|.rm|.rp}"

FORMS = (
    Form(f"cvt{_SAT}.{{d:{_INTEGERS}}}.{{s:{_INTEGERS}}}", "=d s", _integer, _G),
    Form(f"cvt{_WHOLE}{_FTZ}{_SAT}.{{d:{_INTEGERS}}}.{{s:f32}}", "=d s", _float_to_integer, _G),
    Form(f"cvt{_WHOLE}{_SAT}.{{d:{_INTEGERS}}}.{{s:f64}}", "=d s", _float_to_integer, _G),
    Form(f"cvt{_WHOLE}{_SAT}.{{d:{_INTEGERS}}}.{{s:f16}}", "=d s", _float_to_integer, _G),
    Form(f"cvt{{rnd:.rn}}.{{d:f32|f64}}.{{s:{_INTEGERS}}}", "=d s", _integer_to_float, _G),
    Form("cvt{rnd:.rz|.rm|.rp}.{d:f32}.{s:u8|s8|u16|s16|u32|s32}", "=d s", _integer_directed, _G),
    Form("cvt{rnd:.rz|.rm|.rp}.{d:f64}.{s:u8|s8|u16|s16|u32|s32}", "=d s", _integer_to_float, _G),
    Form("cvt{rnd:.rz|.rm|.rp}.{d:f32|f64}.{s:u64|s64}", "=d s", _integer_by_host, _G, host=True),
    Form(f"cvt{_FTZ}{_SAT}.f64.f32", "=f64 f32", _extend, _G),
    Form(f"cvt{{rnd:.rn|.rz|.rm|.rp}}{_FTZ}{_SAT}.f32.f64", "=f32 f64", _shorten, _G),
    Form("cvt.f32.f32", "=f32 f32", _moved, _G),
    *(
        Form(f"cvt{head}.f32.{{t:f32}}", "=f32 f32", _same, _G, nan=True)
        for head in ("{rnd:}{ftz:}{sat:.sat}", f"{{rnd:}}{{ftz:.ftz}}{_SAT}", f"{_WHOLE}{_FTZ}{_SAT}")
    ),
    Form(f"cvt{{rnd:|.rni|.rzi|.rmi|.rpi}}{_SAT}.f64.{{t:f64}}", "=f64 f64", _same, _G),
    Form(f"cvt{_FTZ}{_SAT}.f32.{{s:f16}}", "=f32 s", _from_half, _G, nan=True),
    Form("cvt.f32.{s:bf16}", "=f32 s", _from_brain, _G),
    Form(f"cvt{_SAT}.f64.{{s:f16}}", "=f64 s", _half_to_double, _G),
    Form(f"cvt{_DIRECTION}{_SAT}.{{d:f16}}.f32", "=d f32", _to_half, _G),
    Form(f"cvt{_DIRECTION}{_SAT}.{{d:f16}}.f64", "=d f64", _double_to_half, _G),
    Form(f"cvt{_DIRECTION}{_SAT}.{{d:f16}}.{{s:{_INTEGERS}}}", "=d s", _integer_to_half, _G),
    Form("cvt{rnd:.rn|.rz}{relu:.relu}.{d:f16}.f32", "=d f32", _to_half, _G),
    Form("cvt{rnd:.rn|.rz}{relu:|.relu}.{d:bf16}.f32", "=d f32", _to_half, _G),
    Form("cvt{rnd:.rn|.rz}{relu:|.relu}.{d:f16x2|bf16x2}.f32", "=d f32 f32", _two_to_pair, _G),
    Form(f"cvt{{rnd:|.rni|.rzi|.rmi|.rpi}}{_SAT}.f16.f16", "=f16 f16", _half_to_whole, _G),
    Form("cvt.rna.tf32.f32", "=b32 f32", _tf32, _G),
)
