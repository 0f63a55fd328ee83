"""Approximate functions of f32: computed in double and rounded once, so within 1 ulp and inside every documented bound.

The hardware's own last bits may differ. PTX documents 2 ulp for ex2 and div, 1 ulp for rcp, 2^-22.9 relative for
rsqrt, 2^-22 for lg2 (absolute near 1), 2^-20.5 absolute for sin and cos in [-pi, pi], 2^-11 relative for tanh. Of f64
it has reciprocals and roots that look at the upper half of the operand and give the upper half of the result.
"""

import math

from kerneltrial.devices.cpu.forms import Form
from kerneltrial.devices.cpu.ir import Body
from kerneltrial.devices.cpu.lower_float import inputs, output, real

Fields = dict[str, str]
_TERMS = 13
_BIG_DIVISOR = 2.0**126


def _wide(b: Body, x: str) -> str:
    return b.op(f"fpext float {x} to double")


def _narrow(b: Body, x: str) -> str:
    return b.op(f"fptrunc double {x} to float")


def power_of_two(b: Body, x: str) -> str:
    """2^x in double, by the Taylor series of 2^f for |f| <= 1/2 (error below 1e-16) and a scale by 2^n."""
    whole = b.call("double", "llvm.rint.f64", ("double", x))
    part = b.op(f"fsub double {x}, {whole}")
    value = real(math.log(2) ** _TERMS / math.factorial(_TERMS))
    for k in reversed(range(_TERMS)):
        coefficient = real(math.log(2) ** k / math.factorial(k))
        value = b.call("double", "llvm.fma.f64", ("double", value), ("double", part), ("double", coefficient))
    n = b.call("i64", "llvm.fptosi.sat.i64.f64", ("double", whole))
    low = b.call("i64", "llvm.smax.i64", ("i64", n), ("i64", -1000))
    n = b.call("i64", "llvm.smin.i64", ("i64", low), ("i64", 1000))
    biased = b.op(f"add i64 {n}, 1023")
    scale = b.op(f"bitcast i64 {b.op(f'shl i64 {biased}, 52')} to double")
    result = b.op(f"fmul double {value}, {scale}")
    # an infinite x has no fraction; the scale alone is beyond every float, or below half of the smallest
    infinite = b.op(f"fcmp oeq double {b.call('double', 'llvm.fabs.f64', ('double', x))}, {real(math.inf)}")
    return b.op(f"select i1 {infinite}, double {scale}, double {result}")


def _ex2(b: Body, f: Fields, x: str) -> str:
    (x,) = inputs(b, f, x)
    return output(b, f, _narrow(b, power_of_two(b, _wide(b, x))))


def _library(name: str) -> "object":
    """A function of the host's C library in double: its last bit is lost in the rounding to float."""

    def lower(b: Body, f: Fields, x: str) -> str:
        (x,) = inputs(b, f, x)
        return output(b, f, _narrow(b, b.call("double", name, ("double", _wide(b, x)))))

    return lower


def _rcp(b: Body, f: Fields, x: str) -> str:
    (x,) = inputs(b, f, x)
    return output(b, f, _narrow(b, b.op(f"fdiv double 1.0, {_wide(b, x)}")))


def _sqrt(b: Body, f: Fields, x: str) -> str:
    (x,) = inputs(b, f, x)
    return output(b, f, _narrow(b, b.call("double", "llvm.sqrt.f64", ("double", _wide(b, x)))))


def _rsqrt(b: Body, f: Fields, x: str) -> str:
    (x,) = inputs(b, f, x)
    root = b.call("double", "llvm.sqrt.f64", ("double", _wide(b, x)))
    return output(b, f, _narrow(b, b.op(f"fdiv double 1.0, {root}")))


def _upper_half(b: Body, x: str) -> str:
    """A double with its lower 32 bits cleared, a subnormal one as zero of its sign."""
    bits = b.op(f"bitcast double {x} to i64")
    exponent = b.op(f"and i64 {bits}, {0x7FF << 52}")
    small = b.op(f"icmp eq i64 {exponent}, 0")
    kept = b.op(f"select i1 {small}, i64 {-(1 << 63)}, i64 {-(1 << 32)}")
    return b.op(f"bitcast i64 {b.op(f'and i64 {bits}, {kept}')} to double")


def _gross(b: Body, f: Fields, x: str) -> str:
    """Of the upper 32 bits alone, and only those of the result: a start for iterations."""
    of = _upper_half(b, x)
    if f["op"] == "rsqrt":
        of = b.call("double", "llvm.sqrt.f64", ("double", of))
    nan = b.op(f"fcmp uno double {of}, 0.0")
    result = _upper_half(b, b.op(f"fdiv double 1.0, {of}"))
    return b.op(f"select i1 {nan}, double {real(math.nan)}, double {result}")


def _div(b: Body, f: Fields, x: str, y: str) -> str:
    """div.approx gives 0 for divisors above 2^126 (NaN for an infinite dividend); div.full has the whole range."""
    x, y = inputs(b, f, x, y)
    quotient = _narrow(b, b.op(f"fdiv double {_wide(b, x)}, {_wide(b, y)}"))
    if f["kind"] == "approx":
        size = b.call("float", "llvm.fabs.f32", ("float", y))
        above = b.op(f"fcmp ogt float {size}, {real(_BIG_DIVISOR)}")
        finite = b.op(f"fcmp olt float {size}, {real(math.inf)}")
        zero = b.op(f"fmul float {x}, 0.0")
        quotient = b.op(f"select i1 {b.op(f'and i1 {above}, {finite}')}, float {zero}, float {quotient}")
    return output(b, f, quotient)


_FTZ = "{ftz:|.ftz}"
_G = "special"

FORMS = (
    Form(f"ex2.approx{_FTZ}.f32", "=f32 f32", _ex2, _G, nan=True),
    Form(f"lg2.approx{_FTZ}.f32", "=f32 f32", _library("log2"), _G, nan=True),  # type: ignore[arg-type]
    Form(f"sin.approx{_FTZ}.f32", "=f32 f32", _library("sin"), _G, nan=True),  # type: ignore[arg-type]
    Form(f"cos.approx{_FTZ}.f32", "=f32 f32", _library("cos"), _G, nan=True),  # type: ignore[arg-type]
    Form("tanh.approx.f32", "=f32 f32", _library("tanh"), _G, nan=True),  # type: ignore[arg-type]
    Form(f"rcp.approx{_FTZ}.f32", "=f32 f32", _rcp, _G, nan=True),
    Form(f"sqrt.approx{_FTZ}.f32", "=f32 f32", _sqrt, _G, nan=True),
    Form(f"rsqrt.approx{_FTZ}.f32", "=f32 f32", _rsqrt, _G, nan=True),
    Form(f"div.{{kind:approx|full}}{_FTZ}.f32", "=f32 f32 f32", _div, _G, nan=True),
    Form("{op:rcp}.approx.ftz.{t:f64}", "=t t", _gross, _G),
    Form("{op:rsqrt}.approx.ftz.{t:f64}", "=t t", _gross, _G),
)
