"""Every entry of the table that computes values, all modifiers, against models in integers and fractions."""

import re

import pytest
from instruction_cases import Case, cases
from ptx_models import CANONICAL, FORMATS, WIDTH, evaluate, is_nan, read
from ptx_runner import execute

from kerneltrial.devices.cpu import table


@pytest.mark.parametrize("case", [pytest.param(c, id=re.sub(r"\W+", "-", c.name)) for c in cases()])
def test_against_model(case: Case) -> None:
    columns, immediates = case.operands()
    tail = "".join(f", {i}" for i in immediates)
    for part in case.parts():
        got = execute(part, case.results, case.sources, columns, tail)
        for opcode, rows in zip(part, got, strict=True):
            for row, values in zip(rows, zip(*columns, strict=True), strict=True):
                want = evaluate(opcode, *values, *immediates)
                assert _same(row, want, case.results), (
                    f"{opcode} {[hex(v) for v in values]} gives {[hex(r) for r in row]}, not {[hex(w) for w in want]}"
                )


def _same(row: tuple[int, ...], want: tuple[int, ...], results: list[str]) -> bool:
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
