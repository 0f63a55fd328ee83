"""Approximate functions stay within half an ulp or so of the exact value, well inside their documented bounds."""

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from ptx_models import FORMATS, exact, flushed, is_inf, is_nan, negative
from ptx_runner import execute

_LARGEST = float(np.finfo(np.float32).max)


def _exp2(x: float) -> float:
    try:
        return 2.0**x
    except OverflowError:
        return math.inf


def _log2(x: float) -> float:
    return -math.inf if x == 0 else math.nan if x < 0 else math.log2(x)


def _inverse(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1 / x


def _root(x: float) -> float:
    return x if x == 0 else math.nan if x < 0 else math.sqrt(x)


def _of_finite(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: function(x) if math.isfinite(x) else math.nan


_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "ex2.approx.f32": _exp2,
    "ex2.approx.ftz.f32": _exp2,
    "lg2.approx.f32": _log2,
    "lg2.approx.ftz.f32": _log2,
    "sin.approx.f32": _of_finite(math.sin),
    "sin.approx.ftz.f32": _of_finite(math.sin),
    "cos.approx.f32": _of_finite(math.cos),
    "cos.approx.ftz.f32": _of_finite(math.cos),
    "tanh.approx.f32": math.tanh,
    "rcp.approx.f32": _inverse,
    "rcp.approx.ftz.f32": _inverse,
    "sqrt.approx.f32": _root,
    "sqrt.approx.ftz.f32": _root,
    "rsqrt.approx.f32": lambda x: _inverse(_root(x)),
    "rsqrt.approx.ftz.f32": lambda x: _inverse(_root(x)),
}


def _value(bits: int, ftz: bool) -> float:
    value = float(np.uint32(bits).view(np.float32))
    return math.copysign(0.0, value) if ftz and abs(value) < 2.0**-126 else value


def _check(got: int, want: float, opcode: str, of: object) -> None:
    found = _value(got, False)
    if math.isnan(want):
        assert got == 0x7FFFFFFF, (opcode, of)
        return
    if "ftz" in opcode and abs(want) < 2.0**-126:
        assert abs(found) in (0.0, 2.0**-126), (opcode, of, found, want)
        return
    if abs(want) > _LARGEST * (1 + 2.0**-25):
        assert found == math.copysign(math.inf, want), (opcode, of, found, want)
        return
    ulp = 2.0 ** max(math.frexp(want)[1] - 24, -149) if want else 2.0**-149
    assert abs(found - want) <= 0.51 * ulp, (opcode, of, found, want)
    assert math.copysign(1, found) == math.copysign(1, want) or found != 0, (opcode, of)


def _inputs() -> list[int]:
    draw = random.Random(7)
    special = [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00001, 0x42FE0000, 0x43000000,
    0xC2FC0000,
               0xC3150000, 0xC3160000, 0x3FC90FDB, 0x40490FDB, 0x3F7FFFFF, 0x3F800001]  # fmt: skip
    both = [s | sign for s in special for sign in (0, 0x80000000)]
    near = [int(np.float32(draw.uniform(-140, 140)).view(np.uint32)) for _ in range(150)]
    return both + near + [draw.getrandbits(32) for _ in range(100)]


@pytest.mark.parametrize("opcode", _FUNCTIONS)
def test_one_operand(opcode: str) -> None:
    column = _inputs()
    (rows,) = execute([opcode], ["f32"], ["f32"], [column])
    for (got,), bits in zip(rows, column, strict=True):
        value = _value(bits, "ftz" in opcode)
        want = math.nan if math.isnan(value) else _FUNCTIONS[opcode](value)
        _check(got, want, opcode, hex(bits))


@pytest.mark.parametrize("opcode", ["div.full.f32", "div.full.ftz.f32", "div.approx.f32", "div.approx.ftz.f32"])
def test_division(opcode: str) -> None:
    draw = random.Random(3)
    numerators, divisors = _inputs(), _inputs()
    draw.shuffle(divisors)
    (rows,) = execute([opcode], ["f32"], ["f32", "f32"], [numerators, divisors])
    for (got,), a, b in zip(rows, numerators, divisors, strict=True):
        x, y = (_value(bits, "ftz" in opcode) for bits in (a, b))
        if "approx" in opcode and 2.0**126 < abs(y) < math.inf and not math.isnan(x):
            want = math.nan if math.isinf(x) else 0.0
            assert (got == 0x7FFFFFFF) if math.isnan(want) else _value(got, False) == 0.0
            continue
        with np.errstate(all="ignore"):
            _check(got, float(np.float64(x) / np.float64(y)), opcode, (hex(a), hex(b)))


def _half_value(bits: int, t: str) -> float:
    if is_nan(bits, t):
        return math.nan
    return math.copysign(math.inf, -negative(bits, t) or 1) if is_inf(bits, t) else float(exact(bits, t))


@pytest.mark.parametrize("pair", ["", "x2"])
@pytest.mark.parametrize(
    ("name", "t"), [("ex2.approx", "f16"), ("ex2.approx.ftz", "bf16"), ("tanh.approx", "f16"), ("tanh.approx", "bf16")]
)
def test_halves_are_within_half_an_ulp(name: str, t: str, pair: str) -> None:
    draw = random.Random(name + t)
    special = [0, 1, FORMATS[t].infinity - 1, FORMATS[t].infinity, FORMATS[t].infinity + 1, 0x4B80, 0x4300]
    lows = [draw.getrandbits(16) if k % 3 else draw.choice(special) | draw.choice([0, 0x8000]) for k in range(400)]
    column = [low | draw.getrandbits(16) << 16 for low in lows] if pair else lows
    (rows,) = execute([f"{name}.{t}{pair}"], [t + pair], [t + pair], [column])
    function = _exp2 if name.startswith("ex2") else math.tanh
    for (got,), bits in zip(rows, column, strict=True):
        for k in range(2 if pair else 1):
            x, y = bits >> 16 * k & 0xFFFF, got >> 16 * k & 0xFFFF
            value = _half_value(flushed(x, t) if "ftz" in name else x, t)
            if math.isnan(value):
                assert y == 0x7FFF
                continue
            want, found = function(value), _half_value(y, t)
            f = FORMATS[t]
            if abs(want) >= 2.0**f.highest * (2 - 2.0 ** -(f.fraction + 1)):
                assert found == math.copysign(math.inf, want)
                continue
            smallest = 2.0**f.lowest
            if "ftz" in name and want < smallest:
                assert found in (0.0, smallest)
                continue
            ulp = 2.0 ** (max(math.frexp(want)[1] - 1, f.lowest) - f.fraction) if want else 0.0
            assert abs(found - want) <= 0.501 * ulp, (name, t, hex(x), found, want)


@pytest.mark.parametrize("name", ["rcp", "rsqrt"])
def test_gross_approximations_of_doubles(name: str) -> None:
    draw = random.Random(name)
    special = [0, 1, 0xFFFFFFFFFFFFF, 1 << 52, 0x3FF << 52, (0x7FF << 52) - 1, 0x7FF << 52, 0x7FF8 << 48, 0x7FE << 52]
    column = [s | sign for s in special for sign in (0, 1 << 63)] + [draw.getrandbits(64) for _ in range(400)]
    (rows,) = execute([f"{name}.approx.ftz.f64"], ["f64"], ["f64"], [column])
    for (got,), bits in zip(rows, column, strict=True):
        value = float(np.uint64(flushed(bits, "f64")).view(np.float64))
        found = float(np.uint64(got).view(np.float64))
        want = math.nan if math.isnan(value) else _inverse(_root(value) if name == "rsqrt" else value)
        if math.isnan(want):
            assert math.isnan(found)
            continue
        assert got & 0xFFFFFFFF == 0
        assert math.copysign(1, found) == math.copysign(1, want)
        if abs(want) < 2.0**-1022:
            assert found == 0.0
        elif math.isinf(want):
            assert found == want
        else:
            assert abs(found / want - 1) <= 2.0**-19
