"""Every entry of the table that computes values, all modifiers, against models in integers and fractions."""

import random
import re

import pytest
from ptx_models import CANONICAL, FORMATS, WIDTH, evaluate, is_nan, read
from ptx_runner import execute

from kerneltrial.devices.cpu import table
from kerneltrial.devices.cpu.forms import Form, Match

_ROWS = 220
_SPECIAL_FLOATS = {
    "f32": [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x3F7FFFFF, 0x3F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001,
    0x7FC12345,
            0x7FFFFFFF, 0x4F000000, 0x4EFFFFFF, 0x5F000000, 0x3FC00000, 0x40200000, 0x33800000, 0x00000002],
    "f64": [0, 1, 0xFFFFFFFFFFFFF, 1 << 52, 0x3FF << 52, 0x3FE << 52, (0x7FF << 52) - 1, 0x7FF << 52, (0x7FF << 52) + 1,
            0x7FF8000000001234, 0x41DFFFFFFFC00000, 0x41E0000000000000, 0x43E0000000000000, 0x3FF8000000000000,
            0x36A0000000000000, 0x3690000000000000, 0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x380FFFFFE0000000],
    "f16": [0, 1, 2, 0x3FF, 0x400, 0x3C00, 0x3BFF, 0x3C01, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x1400, 0x0400],
    "bf16": [0, 1, 2, 0x7F, 0x80, 0x3F80, 0x3F7F, 0x3F81, 0x7F7F, 0x7F80, 0x7F81, 0x7FC1, 0x2000, 0x1F80, 0x0080],
}  # fmt: skip


def _value(draw: random.Random, t: str) -> int:
    """A bit pattern of type `t`: often a special one."""
    if t == "pred":
        return draw.getrandbits(1)
    width = WIDTH[t]
    choice = draw.random()
    if t.endswith("x2"):
        return _value(draw, t[:-2]) | _value(draw, t[:-2]) << 16
    if t in FORMATS:
        sign = draw.getrandbits(1) << (width - 1)
        if choice < 0.4:
            return draw.choice(_SPECIAL_FLOATS[t]) | sign
        if choice < 0.7:
            f = FORMATS[t]
            exponent = f.highest + draw.randint(-12, 40 if width > 16 else 6)
            return exponent << f.fraction | draw.getrandbits(f.fraction) | sign
        return draw.getrandbits(width)
    if choice < 0.25:
        return draw.choice([0, 1, 2, width - 1, width, width + 1, 31, 32, 33, 63, 64, 255]) & ((1 << width) - 1)
    if choice < 0.5:
        edge = 1 << draw.randrange(width)
        return (edge + draw.randint(-1, 1)) & ((1 << width) - 1)
    if choice < 0.6:
        return -draw.randint(1, 100) & ((1 << width) - 1)
    return draw.getrandbits(width)


def _result_types(form: Form, match: Match) -> list[str]:
    first = form.specs[0]
    return [match.type_of(first), *(["pred"] if "|" in first else [])]


def _cases() -> list[tuple[str, list[str], Form]]:
    """Opcodes by form and types, so that one kernel runs many."""
    groups: dict[tuple[str, ...], tuple[list[str], Form]] = {}
    for form in table.FORMS:
        if form.raw or form.group == "special":
            continue
        for opcode in form.opcodes():
            match = table.find(opcode)
            assert match is not None
            assert match.form is form, f"{opcode} is in the table twice"
            types = tuple(match.type_of(s) if s != "#" else s for s in form.specs)
            key = (form.head, *types, *form.specs)
            groups.setdefault(key, ([], form))[0].append(opcode)
    return [(" ".join(key), opcodes, form) for key, (opcodes, form) in groups.items()]


@pytest.mark.parametrize(
    ("name", "opcodes", "form"), [pytest.param(*c, id=re.sub(r"\W+", "-", c[0])) for c in _cases()]
)
def test_against_model(name: str, opcodes: list[str], form: Form) -> None:
    match = table.find(opcodes[0])
    assert match is not None
    results = _result_types(form, match)
    sources = [match.type_of(s) for s in form.specs[1:] if s != "#"]
    draw = random.Random(name)
    columns = [[_value(draw, t) for _ in range(_ROWS)] for t in sources]
    immediates = [draw.randrange(256) for s in form.specs if s == "#"]
    tail = "".join(f", {i}" for i in immediates)
    for start in range(0, len(opcodes), 24):
        part = opcodes[start : start + 24]
        got = execute(part, results, sources, columns, tail)
        for opcode, rows in zip(part, got, strict=True):
            for row, values in zip(rows, zip(*columns, strict=True), strict=True):
                want = evaluate(opcode, *values, *immediates)
                assert _same(row, want, results, opcode), (
                    f"{opcode} {[hex(v) for v in values]} gives {[hex(r) for r in row]}, not {[hex(w) for w in want]}"
                )


def _same(row: tuple[int, ...], want: tuple[int, ...], results: list[str], opcode: str) -> bool:
    for got, expected, t in zip(row, want, results, strict=False):
        width = 32 if WIDTH[t] == 8 else WIDTH[t]
        if WIDTH[t] == 8:
            expected = read(expected, t)  # a narrow result is extended into its register by its sign
        if t not in CANONICAL and t in FORMATS and is_nan(expected & ((1 << width) - 1), t):
            if not is_nan(got, t):
                return False
        elif got != expected & ((1 << width) - 1):
            return False
    return True


@pytest.mark.parametrize(
    "opcode",
    ["bfind.shiftamt.b32", "add.rn.s32", "fma.f32", "add.ftz.f64", "mul.s32", "cvt.rn.s32.f32", "setp.lt.b32",
     "cvt.f32.s32",
     "min.ftz.f64", "shf.l.b32", "add.cc.u16", "bar.arriv", "wgmma.fence", "ld.global.f16", "lop3.and.b32",
     "add.f32.foo",
     "ADD.s32", "add.s32.", "add..s32", "div.f32", "sqrt.f32", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"],
)  # fmt: skip
def test_what_is_not_in_the_table_is_not_found(opcode: str) -> None:
    assert table.find(opcode) is None
