"""Chains with a carry flag against Python integers, and across a wait."""

import random

import pytest
from ptx_models import WIDTH, read
from ptx_runner import execute

_CHAINS = [
    ["add.cc.{t}", "addc.cc.{t}", "addc.{t}", "addc.cc.{t}"],
    ["sub.cc.{t}", "subc.cc.{t}", "subc.{t}", "subc.cc.{t}", "subc.{t}"],
    ["add.cc.{t}", "subc.cc.{t}", "addc.{t}"],
    ["mad.lo.cc.{t}", "madc.hi.cc.{t}", "madc.lo.{t}", "madc.hi.{t}", "madc.lo.cc.{t}", "madc.lo.{t}"],
    ["mad.hi.cc.{t}", "madc.lo.cc.{t}", "madc.hi.{t}"],
]


def _edge(draw: random.Random, width: int) -> int:
    kind = draw.random()
    if kind < 0.4:
        return (1 << draw.randrange(width)) + draw.randint(-2, 1) & (1 << width) - 1
    return draw.choice([0, (1 << width) - 1]) if kind < 0.6 else draw.getrandbits(width)


def _step(opcode: str, flag: int, a: int, b: int, c: int) -> tuple[int, int]:
    head, *mods = opcode.split(".")
    t = mods[-1]
    width = WIDTH[t]
    base = head.removesuffix("c")
    if base == "mad":
        product = read(a, t) * read(b, t)
        x, y = (product >> width if "hi" in mods else product) & (1 << width) - 1, c
    else:
        x, y = a, b
    carry = flag if head != base else 0
    total = x - y - carry if base == "sub" else x + y + carry
    out = int(total < 0 or total >> width != 0)
    return total & (1 << width) - 1, out if "cc" in mods else flag


@pytest.mark.parametrize("t", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("chain", range(len(_CHAINS)))
def test_chains(chain: int, t: str) -> None:
    opcodes = [opcode.format(t=t) for opcode in _CHAINS[chain]]
    count = 3 if opcodes[0].startswith("mad") else 2
    draw = random.Random(f"{chain}{t}")
    columns = [[_edge(draw, WIDTH[t]) for _ in range(300)] for _ in range(count)]
    got = execute(opcodes, [t], [t] * count, columns)
    for row, values in enumerate(zip(*columns, strict=True)):
        flag = 0
        for opcode, rows in zip(opcodes, got, strict=True):
            want, flag = _step(opcode, flag, *values, *[0] * (3 - count))
            assert rows[row][0] == want, (opcode, [hex(v) for v in values])


def test_the_flag_outlives_a_wait() -> None:
    ones = [(1 << 32) - 1] * 64
    got = execute(["add.cc.u32 %d0, %s0, %s1; bar.sync 0; addc.u32"], ["u32"], ["u32", "u32"], [ones, ones])
    assert {row[0] for row in got[0]} == {(1 << 32) - 1}
