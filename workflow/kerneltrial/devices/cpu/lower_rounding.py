"""Directed rounding (.rz, .rm, .rp): sums and products of f32 exact by way of double, the rest by `rounding`.

A product of floats is exact in double. A sum is a double and the error of its rounding (Knuth's TwoSum, exact where
nothing overflows, and floats cannot overflow a double). Rounding to nearest float and comparing with the exact value
tells whether to go one float down or up.
"""

from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.ir import Body
from kerneltrial.devices.cpu.lower_float import inputs, output, tiny, tiny_binary, tiny_fused, two_sum, wide
from kerneltrial.devices.cpu.rounding import rounded

Fields = dict[str, str]


def _stepped(b: Body, bits: str, rounded: str, up: bool) -> str:
    """The next float above or below `rounded`, whose bits are `bits`."""
    away = b.op(f"add i32 {bits}, 1")
    toward = b.op(f"sub i32 {bits}, 1")
    positive = b.op(f"fcmp ogt float {rounded}, 0.0")
    grown, shrunk = (away, toward) if up else (toward, away)
    step = b.op(f"select i1 {positive}, i32 {grown}, i32 {shrunk}")
    zero = b.op(f"fcmp oeq float {rounded}, 0.0")
    return b.op(f"select i1 {zero}, i32 {1 if up else -0x7FFFFFFF}, i32 {step}")


def directed(b: Body, mode: str, total: str, error: str) -> str:
    """The exact value `total` + `error` (doubles) as a float, rounded by `mode`: .rz, .rm or .rp."""
    rounded = b.op(f"fptrunc double {total} to float")
    back = b.op(f"fpext float {rounded} to double")
    same = b.op(f"fcmp oeq double {back}, {total}")
    below_error, above_error = b.op(f"fcmp olt double {error}, 0.0"), b.op(f"fcmp ogt double {error}, 0.0")
    high = b.op(f"or i1 {b.op(f'fcmp ogt double {back}, {total}')}, {b.op(f'and i1 {same}, {below_error}')}")
    low = b.op(f"or i1 {b.op(f'fcmp olt double {back}, {total}')}, {b.op(f'and i1 {same}, {above_error}')}")
    bits = b.op(f"bitcast float {rounded} to i32")
    if mode == ".rm":
        result = b.op(f"select i1 {high}, i32 {_stepped(b, bits, rounded, False)}, i32 {bits}")
    elif mode == ".rp":
        result = b.op(f"select i1 {low}, i32 {_stepped(b, bits, rounded, True)}, i32 {bits}")
    else:
        positive = b.op(f"fcmp ogt float {rounded}, 0.0")
        negative = b.op(f"fcmp olt float {rounded}, 0.0")
        far = b.op(f"or i1 {b.op(f'and i1 {high}, {positive}')}, {b.op(f'and i1 {low}, {negative}')}")
        result = b.op(f"select i1 {far}, i32 {b.op(f'sub i32 {bits}, 1')}, i32 {bits}")
    return b.op(f"bitcast i32 {result} to float")


def _sum(b: Body, mode: str, x: str, y: str) -> str:
    """x + y (doubles) rounded to float. An exact zero of unlike signs is -0 downwards."""
    total, error = two_sum(b, x, y)
    rounded = directed(b, mode, total, error)
    if mode != ".rm":
        return rounded
    signs = [b.op(f"bitcast double {v} to i64") for v in (x, y)]
    either = b.op(f"icmp slt i64 {b.op(f'or i64 {signs[0]}, {signs[1]}')}, 0")
    zero = b.op(f"select i1 {either}, float -0.0, float 0.0")
    return b.op(f"select i1 {b.op(f'fcmp oeq double {total}, 0.0')}, float {zero}, float {rounded}")


def _add(b: Body, f: Fields, x: str, y: str) -> str:
    return output(b, f, _sum(b, f["rnd"], *wide(b, *inputs(b, f, x, y))))


def _sub(b: Body, f: Fields, x: str, y: str) -> str:
    x, y = wide(b, *inputs(b, f, x, y))
    return output(b, f, _sum(b, f["rnd"], x, b.op(f"fneg double {y}")))


def _mul(b: Body, f: Fields, x: str, y: str) -> str:
    x, y = wide(b, *inputs(b, f, x, y))
    product = b.op(f"fmul double {x}, {y}")
    return output(b, f, directed(b, f["rnd"], product, "0.0"), tiny(b, "f32", product) if f["ftz"] else "")


def _fma(b: Body, f: Fields, x: str, y: str, z: str) -> str:
    ready = inputs(b, f, x, y, z)
    x, y, z = wide(b, *ready)
    result = _sum(b, f["rnd"], b.op(f"fmul double {x}, {y}"), z)
    return output(b, f, result, tiny_fused(b, *ready) if f["ftz"] else "")


def _by_host(b: Body, f: Fields, *values: str) -> str:
    """In the host's own rounding mode. A reciprocal is a quotient."""
    t, name = f["t"], f["op"]
    ready = inputs(b, f, *values)
    if name == "rcp":
        name, ready = "div", ["1.0", *ready]
    result = rounded(b, "fma" if name == "mad" else name, t, f["rnd"], *ready)
    is_tiny = tiny_binary(b, {"op": "div"}, *ready) if name == "div" and f.get("ftz") else ""
    return output(b, f, result, is_tiny)


_RND = "{rnd:.rz|.rm|.rp}"
_TAIL = f"{_RND}{{ftz:|.ftz}}{{sat:|.sat}}.f32"
_COUNTS = (("add", 2), ("sub", 2), ("mul", 2), ("div", 2), ("fma", 3), ("mad", 3), ("sqrt", 1), ("rcp", 1))

FORMS = (
    Form(f"add{_TAIL}", "=f32 f32 f32", _add, "fp32", nan=True),
    Form(f"sub{_TAIL}", "=f32 f32 f32", _sub, "fp32", nan=True),
    Form(f"mul{_TAIL}", "=f32 f32 f32", _mul, "fp32", nan=True),
    Form(f"{{op:fma}}{_TAIL}", "=f32 f32 f32 f32", _fma, "fp32", nan=True),
    Form(f"{{op:mad}}{_TAIL}", "=f32 f32 f32 f32", _fma, "fp32", nan=True),
    Form(f"{{op:div}}{_RND}{{ftz:|.ftz}}.{{t:f32}}", "=t t t", _by_host, "fp32", nan=True, host=True),
    Form(f"{{op:sqrt}}{_RND}{{ftz:|.ftz}}.{{t:f32}}", "=t t", _by_host, "fp32", nan=True, host=True),
    Form(f"{{op:rcp}}{_RND}{{ftz:|.ftz}}.{{t:f32}}", "=t t", _by_host, "fp32", nan=True, host=True),
    *(Form(f"{{op:{op}}}{_RND}.{{t:f64}}", "=t" + " t" * n, _by_host, "fp64", host=True) for op, n in _COUNTS),
)
