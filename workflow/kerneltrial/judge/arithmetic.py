"""Integer instructions of PTX as expressions: two's complements of a width, held as the signed numbers that they are.

What may leave the signed range over the domain is wrapped in the expression; what has no form here has none.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kerneltrial.inputs.spans import ANYTHING, Cell, span_of

WIDTHS: Final = {f"{kind}{width}": width for kind in "usb" for width in (8, 16, 32, 64)}

Expression = ast.expr


def wrapped(value: int, width: int) -> int:
    half = 1 << (width - 1)
    return (value + half) % (2 * half) - half


def number(value: int) -> Expression:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def binary(op: ast.operator, left: Expression, right: Expression) -> Expression:
    return ast.BinOp(left, op, right)


def _called(function: str, *parts: Expression) -> Expression:
    return ast.Call(ast.Name(function), list(parts), [])


def negated(node: Expression) -> Expression:
    return ast.UnaryOp(ast.Not(), node)


def joined(name: str, left: Expression, right: Expression) -> Expression | None:
    for side, rest in ((left, right), (right, left)):
        if name in ("and", "or") and isinstance(side, ast.Constant):
            return rest if bool(side.value) is (name == "and") else side
    if name in ("and", "or"):
        return ast.BoolOp(ast.And() if name == "and" else ast.Or(), [left, right])
    return ast.Compare(negated(left), [ast.NotEq()], [negated(right)]) if name == "xor" else None


class Arithmetic:
    """One instruction's arithmetic: its modifiers, and the width and sign of its type."""

    def __init__(self, domain: Cell, modifiers: Sequence[str], width: int, signed: bool) -> None:
        self.domain, self.modifiers, self.width, self.signed = domain, modifiers, width, signed

    def fit(self, node: Expression, width: int = 0) -> Expression | None:
        """The result as a two's complement of `width` bits, or of the instruction's."""
        width = width or self.width
        span, half = span_of(node, self.domain), 1 << (width - 1)
        if -half <= span.low and span.high < half:
            return node
        if width > 32:
            return None
        shifted = binary(ast.Mod(), binary(ast.Add(), node, number(half)), number(2 * half))
        return binary(ast.Sub(), shifted, number(half))

    def value(self, node: Expression) -> int | None:
        """The one value that an operand has."""
        span = span_of(node, self.domain)
        return span.low if span.low == span.high else None

    def at_least(self, node: Expression, low: int) -> bool:
        return span_of(node, self.domain) != ANYTHING and span_of(node, self.domain).low >= low

    def within(self, node: Expression, high: int) -> bool:
        """Whether an operand is no more than so much, and not negative."""
        span = span_of(node, self.domain)
        return span.low >= 0 and span.high <= high

    def bits(self, node: Expression | None) -> Expression | None:
        """The bits of an operand as a number that is not negative."""
        if node is None or self.at_least(node, 0):
            return node
        return binary(ast.Mod(), node, number(1 << 32)) if self.width == 32 else None


Operands = Sequence[Expression | None]
_Lowered = Callable[[Arithmetic, Operands], Expression | None]


def _plain(op: type[ast.operator]) -> _Lowered:
    def lower(do: Arithmetic, operands: Operands) -> Expression | None:
        left, right = operands
        if left is None or right is None or "cc" in do.modifiers:
            return None
        return do.fit(binary(op(), left, right))

    return lower


def _product(do: Arithmetic, left: Expression, right: Expression) -> Expression | None:
    whole = binary(ast.Mult(), left, right)
    if "wide" in do.modifiers:
        return do.fit(whole, 2 * do.width)
    if "hi" in do.modifiers:
        if do.width > 32 or span_of(whole, do.domain) == ANYTHING:
            return None  # its upper half is not known where the whole is beyond what spans hold
        return do.fit(binary(ast.FloorDiv(), whole, number(1 << do.width)))
    return do.fit(whole)


def _mul(do: Arithmetic, operands: Operands) -> Expression | None:
    left, right = operands
    return None if left is None or right is None else _product(do, left, right)


def _mad(do: Arithmetic, operands: Operands) -> Expression | None:
    left, right, more = operands
    if left is None or right is None or more is None or "cc" in do.modifiers:
        return None
    product = _product(do, left, right)
    width = 2 * do.width if "wide" in do.modifiers else do.width
    return None if product is None else do.fit(binary(ast.Add(), product, more), width)


def _mov(do: Arithmetic, operands: Operands) -> Expression | None:
    """As it is: a plan whose parameter or size does not fit is refused where it is resolved."""
    return operands[0]


def _cvt(do: Arithmetic, operands: Operands) -> Expression | None:
    """The operand came as a number of the source's type, the last modifier; the result's stands before it."""
    width = WIDTHS.get(do.modifiers[-2]) if len(do.modifiers) == 2 else None
    return None if width is None or operands[0] is None else do.fit(operands[0], width)


def _shl(do: Arithmetic, operands: Operands) -> Expression | None:
    value, by = operands
    if value is None or by is None:
        return None
    places = do.value(by)
    if places is None and do.width == 32 and do.within(by, 32):  # by as many as there are, all are gone
        return do.fit(binary(ast.Mult(), value, _called("power_of_two", by)))
    if places is None or not 0 <= places < do.width:
        return None
    return do.fit(binary(ast.Mult(), value, number(1 << places)))


def _shr(do: Arithmetic, operands: Operands) -> Expression | None:
    value, by = operands
    if value is None or by is None:
        return None
    places = do.value(by)
    if places is None and do.width == 32 and do.within(by, 32):
        return do.fit(binary(ast.FloorDiv(), value, _called("power_of_two", by)))
    if places is None or not 0 <= places < do.width:
        return None
    span = span_of(value, do.domain)
    if span != ANYTHING and span.low >> places == span.high >> places:
        return do.fit(number(span.low >> places))  # a sign, say: the divisor may be more than expressions hold
    return do.fit(binary(ast.FloorDiv(), value, number(1 << places)))


def _and(do: Arithmetic, operands: Operands) -> Expression | None:
    left, right = operands
    if left is None or right is None:
        return None
    mask = do.value(right)
    if mask is not None and mask >= 0 and mask & (mask + 1) == 0:
        return binary(ast.Mod(), left, number(mask + 1))
    if mask is not None and mask < 0 and -mask & (-mask - 1) == 0:
        return binary(ast.Mult(), binary(ast.FloorDiv(), left, number(-mask)), number(-mask))
    return do.fit(_called("bit_and", left, right))


def _bitwise(function: str) -> _Lowered:
    def lower(do: Arithmetic, operands: Operands) -> Expression | None:
        left, right = operands
        return None if left is None or right is None else do.fit(_called(function, left, right))

    return lower


def _picked(function: str) -> _Lowered:
    def lower(do: Arithmetic, operands: Operands) -> Expression | None:
        left, right = operands
        return None if left is None or right is None else do.fit(_called(function, left, right))

    return lower


def _selp(do: Arithmetic, operands: Operands) -> Expression | None:
    one, other, which = operands
    if one is None or other is None or which is None:
        return None
    return do.fit(_called("choose", one, other, which))


def _divided(do: Arithmetic, operands: Operands) -> tuple[Expression, Expression, Expression] | None:
    """Dividend, divisor and quotient, rounded toward zero; None where the divisor may be no positive number."""
    left, right = operands
    if left is None or right is None or not do.at_least(right, 1):
        return None
    if do.at_least(left, 0):
        return left, right, binary(ast.FloorDiv(), left, right)
    above = binary(ast.FloorDiv(), _called("max", left, number(0)), right)
    below = binary(ast.FloorDiv(), _called("max", ast.UnaryOp(ast.USub(), left), number(0)), right)
    return left, right, binary(ast.Sub(), above, below)


def _div(do: Arithmetic, operands: Operands) -> Expression | None:
    found = _divided(do, operands)
    return None if found is None else do.fit(found[2])


def _rem(do: Arithmetic, operands: Operands) -> Expression | None:
    found = _divided(do, operands)
    if found is None:
        return None
    left, right, quotient = found
    if do.at_least(left, 0):
        return do.fit(binary(ast.Mod(), left, right))
    return do.fit(binary(ast.Sub(), left, binary(ast.Mult(), quotient, right)))


def _neg(do: Arithmetic, operands: Operands) -> Expression | None:
    return None if operands[0] is None else do.fit(ast.UnaryOp(ast.USub(), operands[0]))


def _not_bits(do: Arithmetic, operands: Operands) -> Expression | None:
    return None if operands[0] is None else do.fit(binary(ast.Sub(), number(-1), operands[0]))


def _abs(do: Arithmetic, operands: Operands) -> Expression | None:
    value = operands[0]
    return None if value is None else do.fit(_called("max", value, ast.UnaryOp(ast.USub(), value)))


def _clz(do: Arithmetic, operands: Operands) -> Expression | None:
    value = do.bits(operands[0])
    return None if value is None else binary(ast.Sub(), number(do.width), _called("bit_length", value))


def _popc(do: Arithmetic, operands: Operands) -> Expression | None:
    value = do.bits(operands[0])
    return None if value is None else _called("bit_count", value)


def _brev(do: Arithmetic, operands: Operands) -> Expression | None:
    value = do.bits(operands[0])
    return None if value is None or do.width != 32 else do.fit(_called("bits_turned", value))


def _bfind(do: Arithmetic, operands: Operands) -> Expression | None:
    """The place of the highest bit, or how far it is from the top; of zero, -1."""
    value = operands[0] if do.signed else do.bits(operands[0])
    if value is None or not do.at_least(value, 0):
        return None
    length = _called("bit_length", value)
    if "shiftamt" not in do.modifiers:
        return binary(ast.Sub(), length, number(1))
    none = ast.Compare(value, [ast.Eq()], [number(0)])
    return _called("choose", number(-1), binary(ast.Sub(), number(do.width), length), none)


COUNTED: Final = frozenset({"brev", "bfind", "clz", "popc"})
LOWERED: Final[Mapping[str, _Lowered]] = {
    "mov": _mov, "cvt": _cvt, "add": _plain(ast.Add), "sub": _plain(ast.Sub), "mul": _mul, "mad": _mad, "shl": _shl,
    "shr": _shr, "and": _and, "or": _bitwise("bit_or"), "xor": _bitwise("bit_xor"), "min": _picked("min"),
    "max": _picked("max"), "selp": _selp, "div": _div, "rem": _rem, "neg": _neg, "not": _not_bits, "abs": _abs,
    "clz": _clz, "popc": _popc, "brev": _brev, "bfind": _bfind,
}  # fmt: skip
SOURCES: Final[Mapping[str, int]] = {"mov": 1, "cvt": 1, "neg": 1, "not": 1, "abs": 1, "mad": 3, "selp": 3,
                                  "clz": 1, "popc": 1, "brev": 1, "bfind": 1}  # fmt: skip
"""How many operands an instruction reads, where that is not two."""
COMPARED: Final[Mapping[str, type[ast.cmpop]]] = {
    "eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE,
    "lo": ast.Lt, "ls": ast.LtE, "hi": ast.Gt, "hs": ast.GtE,
}  # fmt: skip
