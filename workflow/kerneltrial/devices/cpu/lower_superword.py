"""Vectors of the host: four multiply-adds as one, and how their registers are read and written together.

A register of a vector that does not outlive its basic block has no value of its own until it is looked at; of vectors
that do, one alloca holds all four.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerneltrial.devices.cpu.lower_float import canonical_nan
from kerneltrial.devices.cpu.superword import LANES, Lanes, Superword

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.generator import Generator

_WORDS, _FLOATS = f"<{LANES} x i32>", f"<{LANES} x float>"


def multiply_add(g: Generator, word: Superword) -> None:
    """The four at the place of the first."""
    b = g.body
    factors, addends = (
        b.op(f"bitcast {_WORDS} {_read(g, lanes)} to {_FLOATS}") for lanes in (word.factors, word.addends)
    )
    factor = b.op(f"bitcast i32 {g.raw(word.factor)} to float")
    one = b.op(f"insertelement {_FLOATS} poison, float {factor}, i64 0")
    same = b.op(f"shufflevector {_FLOATS} {one}, {_FLOATS} poison, <{LANES} x i32> zeroinitializer")
    result = b.call(_FLOATS, f"llvm.fma.v{LANES}f32", (_FLOATS, same), (_FLOATS, factors), (_FLOATS, addends))
    bits = b.op(f"bitcast {_FLOATS} {result} to {_WORDS}")
    write(g, word.results, bits if g.flow.pure.issuperset(word.results) else canonical_nan(b, bits, LANES))


def load(g: Generator, lanes: Lanes, pointer: str) -> None:
    """Registers from four words of memory."""
    write(g, lanes, g.body.op(f"load {_WORDS}, ptr {pointer}, align 4"))


def write(g: Generator, lanes: Lanes, vector: str) -> None:
    """Give four registers their values."""
    if lanes in g.together:
        g.body.do(f"store {_WORDS} {vector}, ptr {g.together[lanes]}")
        return
    if g.flow.local.issuperset(lanes):
        g.vectors[lanes] = vector
        g.lanes |= {register: (vector, n) for n, register in enumerate(lanes)}
        return
    for n, register in enumerate(lanes):
        g.set_raw(register, g.body.op(f"extractelement {_WORDS} {vector}, i64 {n}"))


def _read(g: Generator, lanes: Lanes) -> str:
    if lanes in g.together:
        return g.body.op(f"load {_WORDS}, ptr {g.together[lanes]}")
    if lanes in g.vectors:
        return g.vectors[lanes]
    vector = "poison"
    for n, register in enumerate(lanes):
        vector = g.body.op(f"insertelement {_WORDS} {vector}, i32 {g.raw(register)}, i64 {n}")
    if g.flow.local.issuperset(lanes):
        g.vectors[lanes] = vector
    return vector


def declare(g: Generator) -> None:
    """An alloca for each vector that outlives a basic block; its registers' pointers lead into it."""
    for number, lanes in enumerate(g.flow.superwords.together):
        g.together[lanes] = f"%t{number}"
        g.body.declare(f"%t{number}", _WORDS)
        g.body.do(f"store {_WORDS} zeroinitializer, ptr %t{number}")
        for n, register in enumerate(lanes):
            g.body.do(f"%r{register} = getelementptr i8, ptr %t{number}, i64 {4 * n}")
            if (unset := g.unset(register)) != "0":
                g.body.do(f"store i32 {unset}, ptr %r{register}")


def spill(g: Generator, registers: int) -> int:
    """Store the vectors whose registers are all in the set `registers` to the context; the registers that are left."""
    for lanes, pointer in _whole(g, registers):
        value = g.body.op(f"load {_WORDS}, ptr {pointer}")
        g.body.do(f"store {_WORDS} {value}, ptr {_place(g, lanes)}, align 4")
        registers &= ~_mask(lanes)
    return registers


def reload(g: Generator, registers: int) -> int:
    """Load vectors from the context, as `spill` stored them; the registers that are left."""
    for lanes, pointer in _whole(g, registers):
        value = g.body.op(f"load {_WORDS}, ptr {_place(g, lanes)}, align 4")
        g.body.do(f"store {_WORDS} {value}, ptr {pointer}")
        registers &= ~_mask(lanes)
    return registers


def _place(g: Generator, lanes: Lanes) -> str:
    """Where a vector lies in the context: its registers' places follow each other (see `program`)."""
    return g.body.op(f"getelementptr i8, ptr %ctx, i64 {g.layout.spills[lanes[0]]}")


def _whole(g: Generator, registers: int) -> list[tuple[Lanes, str]]:
    return [(lanes, pointer) for lanes, pointer in g.together.items() if registers & _mask(lanes) == _mask(lanes)]


def _mask(lanes: Lanes) -> int:
    return sum(1 << register for register in lanes)
