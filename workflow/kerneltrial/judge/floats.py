"""Sizes that became floats and were moved by a constant, as in `n - 1.0f`, and where what is made of them turns.

Products, quotients and roots of a sum change at its zero alone, and a maximum at one number: there a kernel can do
something else. So shapes below it, at it and above it are asked for, and nothing else of the sum is left to ask.
"""

import ast
import math
import struct
from collections.abc import Sequence
from typing import Final

from kerneltrial.judge.arithmetic import WIDTHS, Expression, number
from kerneltrial.judge.ptx import Statement
from kerneltrial.judge.sizes import Sizes

_EXACT: Final = 2**23  # where a sum with less is near zero it is exact
_FORMATS: Final = {"f32": (">f", 8), "f64": (">d", 16)}


def turns(statement: Statement, sizes: Sizes) -> list[Expression] | None:
    """Conditions that are to hold in some shape each, for a sum, maximum or minimum of a size and a constant; None
    for any other instruction."""
    kind = statement.opcode.rpartition(".")[2]
    name = _modified(statement, kind)
    if name not in ("add", "max", "min") or kind not in _FORMATS or len(statement.parts) != 3:
        return None
    sides = [_constant(part, kind, sizes) for part in statement.parts[1:]]
    if sides.count(None) != 1:
        return None
    place, constant = next((place, side) for place, side in enumerate(sides) if side is not None)
    other = statement.parts[2 - place]
    found = _moved(other[0], kind, sizes) if len(other) == 1 else None
    if found is None or constant is None:
        return None
    node, by = found
    if name == "add":
        return None if by else _about(node, -constant, sizes)
    return _about(node, constant - by, sizes)


def _moved(register: str, kind: str, sizes: Sizes) -> tuple[Expression, float] | None:
    """The size in a float, and by what one sum moved it."""
    node = _converted(register, kind, sizes)
    if node is not None:
        return node, 0.0
    writer = sizes.writer(register)
    if writer is None or len(writer.parts) != 3 or _modified(writer, kind) != "add":
        return None
    for place in (1, 2):
        by, other = _constant(writer.parts[place], kind, sizes), writer.parts[3 - place]
        node = _converted(other[0], kind, sizes) if by is not None and len(other) == 1 else None
        if by is not None and by.is_integer() and node is not None:
            return node, by
    return None


def _converted(register: str, kind: str, sizes: Sizes) -> Expression | None:
    """The size that became a float as it is."""
    writer = sizes.writer(register)
    name, *modifiers = writer.opcode.split(".") if writer is not None else ("",)
    if writer is None or name != "cvt" or modifiers[-2:-1] != [kind] or "sat" in modifiers:
        return None
    node = sizes.of(writer.parts[1][0]) if len(writer.parts) == 2 and len(writer.parts[1]) == 1 else None
    if node is None or WIDTHS.get(modifiers[-1], 0) < 32:
        return None
    return node if modifiers[-1][0] == "s" or sizes.span(node).low >= 0 else None


def _modified(statement: Statement, kind: str) -> str:
    """The name of an instruction on floats of a kind that is not kept between 0 and 1."""
    name, *modifiers = statement.opcode.split(".")
    return name if modifiers[-1:] == [kind] and "sat" not in modifiers else ""


def _constant(part: Sequence[str], kind: str, sizes: Sizes) -> float | None:
    """A float of the text, no larger than what sums with it leave exact."""
    form, digits = _FORMATS[kind]
    text = part[0] if len(part) == 1 else ""
    writer = sizes.writer(text) if text else None
    if writer is not None and writer.opcode == f"mov.{kind}" and len(writer.parts) == 2 and len(writer.parts[1]) == 1:
        text = writer.parts[1][0]
    if text[:2].lower() != f"0{kind[0] if digits == 8 else 'd'}" or len(text) != 2 + digits:
        return None
    try:
        (value,) = struct.unpack(form, bytes.fromhex(text[2:]))
    except ValueError:
        return None
    return float(value) if abs(value) < _EXACT else None


def _about(node: Expression, value: float, sizes: Sizes) -> list[Expression]:
    """That a size is below, at and above a number, as far as it can be."""
    low, high, _ = sizes.span(node)
    found: list[Expression] = []
    if low < value:
        found.append(ast.Compare(node, [ast.Lt()], [number(math.ceil(value))]))
    if low <= value <= high and value.is_integer():
        found.append(ast.Compare(node, [ast.Eq()], [number(int(value))]))
    if high > value:
        found.append(ast.Compare(node, [ast.Gt()], [number(math.floor(value))]))
    return [] if low > value or high < value else found
