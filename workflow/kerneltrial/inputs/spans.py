"""What an expression can be over many shapes at once: a range of values, and what they all leave as a remainder.

Each dimension stands for evenly spaced values, and so does each result. A result may hold more than what can occur,
never less: so what a span rules out cannot happen, and what it leaves open must be looked at in smaller parts.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from kerneltrial.inputs.expressions import MAGNITUDE


class Span(NamedTuple):
    """The values low, low + step, ... up to high; `step` is 0 where there is one value alone."""

    low: int
    high: int
    step: int


Cell = Mapping[str, Span]  # a span for each dimension: many shapes

ANYTHING: Final = Span(-MAGNITUDE, MAGNITUDE, 1)
_EITHER: Final = Span(0, 1, 1)


def span_of(node: ast.expr, cell: Cell) -> Span:
    """The values of an expression over a cell; those of a step that has no value at all are anything."""
    found = _span(node, cell)
    return found if found.low >= -MAGNITUDE and found.high <= MAGNITUDE else ANYTHING


def truth(node: ast.expr, cell: Cell) -> bool | None:
    """Whether an expression is nonzero in every shape of a cell (True), in none (False), or neither is certain."""
    return _truth(span_of(node, cell))


def _truth(span: Span) -> bool | None:
    if span.low == span.high == 0:
        return False
    without_zero = span.low > 0 or span.high < 0 or (span.step > 0 and span.low % span.step != 0)
    return True if without_zero else None


def _span(node: ast.expr, cell: Cell) -> Span:
    match node:
        case ast.Constant(value=int(number)):
            return Span(number, number, 0)
        case ast.Name(id=name):
            return cell[name]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _of_truth(_not(truth(operand, cell)))
        case ast.UnaryOp(op=sign, operand=operand):
            inner = span_of(operand, cell)
            return _negative(inner) if isinstance(sign, ast.USub) else inner
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](span_of(left, cell), span_of(right, cell))
        case ast.BoolOp(op=op, values=values):
            known = [truth(value, cell) for value in values]
            return _of_truth(all_of(known) if isinstance(op, ast.And) else _not(all_of([_not(k) for k in known])))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            parts = [span_of(part, cell) for part in (left, *comparators)]
            return _of_truth(all_of([_COMPARED[type(o)](*ends) for o, ends in zip(ops, pairwise(parts), strict=True)]))
        case ast.Call(func=ast.Name(id=function), args=args):
            return _called(function, [span_of(part, cell) for part in args])
    raise AssertionError(f"{type(node).__name__} passed the whitelist")  # a fault of this module


def all_of(known: list[bool | None]) -> bool | None:
    """Three-valued conjunction."""
    if False in known:
        return False
    return None if None in known else True


def _not(known: bool | None) -> bool | None:
    return None if known is None else not known


def _of_truth(known: bool | None) -> Span:
    return _EITHER if known is None else Span(int(known), int(known), 0)


def _negative(span: Span) -> Span:
    return Span(-span.high, -span.low, span.step)


def _sum(left: Span, right: Span) -> Span:
    return Span(left.low + right.low, left.high + right.high, math.gcd(left.step, right.step))


def _product(left: Span, right: Span) -> Span:
    ends = [one * other for one in left[:2] for other in right[:2]]
    step = math.gcd(left.step * right.low, right.step * left.low, left.step * right.step)
    return Span(min(ends), max(ends), step if min(ends) < max(ends) else 0)


def _is_known(span: Span) -> bool:
    return span.low == span.high


def _quotient(left: Span, right: Span) -> Span:
    if _is_known(left) and _is_known(right) and right.low:
        return Span(left.low // right.low, left.low // right.low, 0)
    if right.low <= 0 or left == ANYTHING:  # what is beyond all bounds may be so by any factor
        return ANYTHING
    ends = [one // other for one in left[:2] for other in right[:2]]
    low, high = min(ends), max(ends)
    exact = right.low == right.high and left.step % right.low == 0
    return Span(low, high, 0 if low == high else left.step // right.low if exact else 1)


def _remainder(left: Span, right: Span) -> Span:
    if _is_known(left) and _is_known(right) and right.low:
        return Span(left.low % right.low, left.low % right.low, 0)
    if right.low <= 0:
        return ANYTHING
    if right.low < right.high:
        return Span(0, right.high - 1, 1)
    divisor = right.low
    if left.low // divisor == left.high // divisor:
        return Span(left.low % divisor, left.high % divisor, left.step)
    step = math.gcd(left.step, divisor)
    low = left.low % step
    high = divisor - step + low
    return Span(low, high, step if low < high else 0)


def _bits(function: str, left: Span, right: Span) -> Span:
    """`bit_and`, `bit_or`, `bit_xor` of two's complements: no plan has them, kernels have."""
    if _is_known(left) and _is_known(right):
        value = _BITS[function](left.low, right.low)
        return Span(value, value, 0)
    highs = [side.high for side in (left, right) if side.low >= 0]
    if function == "bit_and" and highs:
        return _masked(left, right, min(highs))
    if len(highs) < 2:
        return ANYTHING
    most = (1 << max(highs).bit_length()) - 1
    if function == "bit_or":
        return _from_to(max(left.low, right.low), most)
    return _from_to(0 if _equal(left, right) is None else 1, most)


def _masked(left: Span, right: Span, most: int) -> Span:
    """`bit_and` where a side is not negative: of a mask that is known, no value lies below its lowest bit but zero."""
    masks = [side.low for side in (left, right) if _is_known(side) and side.low > 0]
    step = max((mask & -mask for mask in masks), default=1)
    high = most - most % step
    return Span(0, high, step if high else 0)


def _counted(function: str, of: Span) -> Span:
    """Bits that are counted, turned round, or shifted by: kernels have that too, of numbers that are not negative."""
    if of.low < 0 or (function == "power_of_two" and of.high >= MAGNITUDE.bit_length()):
        return ANYTHING
    if _is_known(of):
        value = _COUNTED[function](of.low)
        return Span(value, value, 0)
    if function == "bit_length":
        return _from_to(of.low.bit_length(), of.high.bit_length())
    if function == "power_of_two":
        return Span(1 << of.low, 1 << of.high, 1 << of.low)
    return _from_to(int(of.low > 0), of.high.bit_length() if function == "bit_count" else 2**32 - 1)


def _turned(value: int) -> int:
    return int(f"{value % 2**32:032b}"[::-1], 2)


def _hull(left: Span, right: Span) -> Span:
    low, high = min(left.low, right.low), max(left.high, right.high)
    step = math.gcd(left.step, right.step, left.low - right.low)
    return Span(low, high, step if low < high else 0)


def _from_to(low: int, high: int) -> Span:
    return Span(low, high, 1 if low < high else 0)


def _called(function: str, parts: list[Span]) -> Span:
    if function in _BITS:
        return _bits(function, *parts)
    if function in _COUNTED:
        return _counted(function, *parts)
    if function == "choose":  # the first of two where a condition holds: kernels have that too
        holds = _truth(parts[2])
        return _hull(*parts[:2]) if holds is None else parts[0 if holds else 1]
    if function == "ceil_div":
        return _negative(_quotient(_negative(parts[0]), parts[1]))
    pick = min if function == "min" else max
    low, high = pick(part.low for part in parts), pick(part.high for part in parts)
    step = math.gcd(*(part.step for part in parts), *(part.low - low for part in parts))
    return Span(low, high, step if low < high else 0)


def _less(left: Span, right: Span) -> bool | None:
    if left.high < right.low:
        return True
    return False if left.low >= right.high else None


def _equal(left: Span, right: Span) -> bool | None:
    if left.low == left.high == right.low == right.high:
        return True
    step = math.gcd(left.step, right.step)
    apart = left.high < right.low or right.high < left.low or (step > 0 and (left.low - right.low) % step != 0)
    return False if apart else None


_BITS: Mapping[str, Callable[[int, int], int]] = {
    "bit_and": operator.and_,
    "bit_or": operator.or_,
    "bit_xor": operator.xor,
}
_COUNTED: Mapping[str, Callable[[int], int]] = {
    "bit_length": int.bit_length,
    "bit_count": int.bit_count,
    "bits_turned": _turned,  # of 32
    "power_of_two": lambda value: 1 << value,
}
_BINARY: Mapping[type[ast.operator], Callable[[Span, Span], Span]] = {
    ast.Add: _sum,
    ast.Sub: lambda left, right: _sum(left, _negative(right)),
    ast.Mult: _product,
    ast.FloorDiv: _quotient,
    ast.Mod: _remainder,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Span, Span], bool | None]] = {
    ast.Eq: _equal,
    ast.NotEq: lambda left, right: _not(_equal(left, right)),
    ast.Lt: _less,
    ast.GtE: lambda left, right: _not(_less(left, right)),
    ast.Gt: lambda left, right: _less(right, left),
    ast.LtE: lambda left, right: _not(_less(right, left)),
}
