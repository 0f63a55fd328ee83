"""f16 and bf16 values in LLVM IR: 16-bit patterns to float and back, rounded once; packed pairs taken apart.

A pattern widens to float without loss. Sums and products of two f16, and sums of two bf16, may be rounded to float
first and then to 16 bits: float has more than twice the bits and two, so that rounding twice equals rounding once.
Everything else goes by way of a float *rounded to odd*: cut off, with the last bit set where something was lost.
Rounding that to a format with at least two bits less equals rounding the exact value (Boldo and Melquiond, 2008).
"""

from collections.abc import Callable

from kerneltrial.devices.cpu.ir import Body
from kerneltrial.devices.cpu.lower_rounding import directed

CANONICAL = 0x7FFF
"""The NaN that every instruction on f16 and bf16 gives."""
ONE = {"f16": 0x3C00, "bf16": 0x3F80}
INFINITY = {"f16": 0x7C00, "bf16": 0x7F80}


def scalar(type_: str) -> str:
    """The type of one element: f16 of f16x2."""
    return type_.removesuffix("x2")


def widen(b: Body, t: str, x: str) -> str:
    """The float of a 16-bit pattern."""
    if t == "f16":
        return b.op(f"fpext half {b.op(f'bitcast i16 {x} to half')} to float")
    wide = b.op(f"zext i16 {x} to i32")
    return b.op(f"bitcast i32 {b.op(f'shl i32 {wide}, 16')} to float")


def canonical(b: Body, t: str, x: str) -> str:
    """Every NaN made the canonical one, in integers, since LLVM takes all NaNs for equal."""
    nan = b.op(f"icmp ugt i16 {b.op(f'and i16 {x}, {0x7FFF}')}, {INFINITY[t]}")
    return b.op(f"select i1 {nan}, i16 {CANONICAL}, i16 {x}")


def narrow(b: Body, t: str, x: str) -> str:
    """A float as a 16-bit pattern, to nearest even; NaN is the canonical one."""
    if t == "f16":
        return canonical(b, t, b.op(f"bitcast half {b.op(f'fptrunc float {x} to half')} to i16"))
    bits = b.op(f"bitcast float {x} to i32")
    nan = b.op(f"icmp ugt i32 {b.op(f'and i32 {bits}, {0x7FFFFFFF}')}, {0x7F800000}")
    last = b.op(f"and i32 {b.op(f'lshr i32 {bits}, 16')}, 1")
    up = b.op(f"add i32 {b.op(f'add i32 {bits}, {0x7FFF}')}, {last}")
    cut = b.op(f"trunc i32 {b.op(f'lshr i32 {up}, 16')} to i16")
    return b.op(f"select i1 {nan}, i16 {CANONICAL}, i16 {cut}")


def to_odd(b: Body, total: str, error: str = "0.0") -> str:
    """The exact value `total` + `error` (doubles) as a float rounded to odd."""
    cut = directed(b, ".rz", total, error)
    lost = b.op(f"fcmp one double {b.op(f'fpext float {cut} to double')}, {total}")
    if error != "0.0":
        lost = b.op(f"or i1 {lost}, {b.op(f'fcmp one double {error}, 0.0')}")
    sticky = b.op(f"zext i1 {lost} to i32")
    bits = b.op(f"bitcast float {cut} to i32")
    return b.op(f"bitcast i32 {b.op(f'or i32 {bits}, {sticky}')} to float")


def narrow_directed(b: Body, t: str, mode: str, x: str) -> str:
    """A float (exact, or rounded to odd) as a 16-bit pattern, rounded by `mode`: .rz, .rm or .rp."""
    near = narrow(b, t, x)
    back = widen(b, t, near)
    high, low = b.op(f"fcmp ogt float {back}, {x}"), b.op(f"fcmp olt float {back}, {x}")
    negative = b.op(f"icmp slt i32 {b.op(f'bitcast float {x} to i32')}, 0")
    down = b.op(f"select i1 {negative}, i16 1, i16 -1")  # what the pattern changes by on the way down
    up = b.op(f"sub i16 0, {down}")
    stepped = {".rm": (high, down), ".rp": (low, up)}
    if mode == ".rz":
        far = b.op(f"select i1 {negative}, i1 {low}, i1 {high}")
        step, change = far, "-1"
    else:
        step, change = stepped[mode]
    # a tiny value that was rounded to zero keeps its sign in `near`, so that one step from zero is right as well
    return b.op(f"select i1 {step}, i16 {b.op(f'add i16 {near}, {change}')}, i16 {near}")


def flush(b: Body, t: str, x: str) -> str:
    """A subnormal becomes zero of the same sign."""
    small = b.op(f"icmp eq i16 {b.op(f'and i16 {x}, {INFINITY[t]}')}, 0")
    return b.op(f"select i1 {small}, i16 {b.op(f'and i16 {x}, {-0x8000}')}, i16 {x}")


def finished(b: Body, f: dict[str, str], t: str, x: str, is_tiny: str = "") -> str:
    """A result, flushed, saturated to [0, 1] (NaN to +0) or cut off below 0, as the instruction asks.

    `is_tiny` (an i1) says that the exact result lies below the normal numbers, where rounding may hide that.
    """
    if f.get("ftz"):
        x = flush(b, t, x)
    if f.get("ftz") and is_tiny:
        x = b.op(f"select i1 {is_tiny}, i16 {b.op(f'and i16 {x}, {-0x8000}')}, i16 {x}")
    if f.get("sat"):
        nan = b.op(f"icmp eq i16 {x}, {CANONICAL}")
        under = b.op(f"or i1 {nan}, {b.op(f'icmp slt i16 {x}, 0')}")
        x = b.call("i16", "llvm.umin.i16", ("i16", x), ("i16", ONE[t]))
        x = b.op(f"select i1 {under}, i16 0, i16 {x}")
    if f.get("relu"):
        x = b.call("i16", "llvm.smax.i16", ("i16", x), ("i16", 0))
    return x


def halves(b: Body, x: str) -> tuple[str, str]:
    """The lower and the upper element of a packed register."""
    return b.op(f"trunc i32 {x} to i16"), b.op(f"trunc i32 {b.op(f'lshr i32 {x}, 16')} to i16")


def packed(b: Body, low: str, high: str) -> str:
    upper = b.op(f"shl i32 {b.op(f'zext i16 {high} to i32')}, 16")
    return b.op(f"or i32 {b.op(f'zext i16 {low} to i32')}, {upper}")


def each(b: Body, type_: str, function: Callable[..., str], *values: str) -> str:
    """`function` of 16-bit patterns, on one element or on both of a pair."""
    if not type_.endswith("x2"):
        return function(*values)
    parts = [halves(b, v) for v in values]
    return packed(b, function(*(p[0] for p in parts)), function(*(p[1] for p in parts)))
