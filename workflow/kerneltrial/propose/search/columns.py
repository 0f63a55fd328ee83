"""Integer expressions over whole columns at once: one value a configuration, in NumPy.

The grammar is that of `inputs.expressions`, which checks the text first; a space has thousands of configurations, and
one by one they would take seconds.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from kerneltrial.inputs.expressions import ExpressionProblem, names

Integers = NDArray[np.int64]
Columns = Mapping[str, Integers]

_EXACT = 2.0**62  # as in inputs.expressions: int64 holds every step below
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Integers, Integers], Integers]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Integers, Integers], NDArray[np.bool_]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def column(expression: str, columns: Columns) -> Integers:
    """Return the expression's value in every row; comparisons and logic give 0 or 1.

    Unlike with single numbers both sides of `and` and `or` are evaluated, so neither may divide by zero.

    Raises
    ------
    ExpressionProblem
        Where the text is not allowed, a name is no column, or a row divides by zero or reaches 2**62.
    """
    missing = sorted(names(expression) - set(columns))
    if missing:
        raise ExpressionProblem(
            f"expression {expression!r}: {missing[0]!r} is not known; known are {', '.join(columns)}"
        )
    rows = len(next(iter(columns.values()), ()))
    try:
        return _value(_tree(expression), columns, rows)
    except _ColumnError as fault:
        raise ExpressionProblem(f"expression {expression!r}: {fault}") from None


@lru_cache(maxsize=4096)
def _tree(expression: str) -> ast.expr:
    """A space has a few hundred expressions, and a search asks for each of them thousands of times."""
    return ast.parse(expression.strip(), mode="eval").body


class _ColumnError(Exception):
    """What is wrong, without the expression's own text."""


def _value(node: ast.expr, columns: Columns, rows: int) -> Integers:
    def value(part: ast.expr) -> Integers:
        return _value(part, columns, rows)

    match node:
        case ast.Constant(value=int(number)):
            return np.full(rows, number, dtype=np.int64)
        case ast.Name(id=name):
            return columns[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _arithmetic(op, value(left), value(right))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _flags(value(operand) == 0)
        case ast.UnaryOp(op=sign, operand=operand):
            return -value(operand) if isinstance(sign, ast.USub) else value(operand)
        case ast.BoolOp(op=op, values=values):
            join = np.logical_and if isinstance(op, ast.And) else np.logical_or
            return _flags(reduce(join, [value(part) != 0 for part in values]))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            parts = [value(part) for part in (left, *comparators)]
            holds = [_COMPARISONS[type(op)](*parts[i : i + 2]) for i, op in enumerate(ops)]
            return _flags(reduce(np.logical_and, holds))
        case ast.Call(func=ast.Name(id=function), args=args):
            return _called(function, [value(part) for part in args])
    raise AssertionError(f"{type(node).__name__} passed the whitelist")  # a fault of this module


def _flags(holds: NDArray[np.bool_]) -> Integers:
    return holds.astype(np.int64)


def _arithmetic(op: ast.operator, left: Integers, right: Integers) -> Integers:
    if isinstance(op, ast.FloorDiv | ast.Mod) and not right.all():
        raise _ColumnError("divides by zero")
    if isinstance(op, ast.Mult) and (np.abs(left.astype(float)) * np.abs(right.astype(float)) >= _EXACT).any():
        raise _ColumnError("a step reaches 2**62 in magnitude")
    result: Integers = _ARITHMETIC[type(op)](left, right)
    return result


def _called(function: str, values: list[Integers]) -> Integers:
    result: Integers
    match function:
        case "ceil_div":
            result = -_arithmetic(ast.FloorDiv(), -values[0], values[1])
        case "min":
            result = reduce(np.minimum, values)
        case "max":
            result = reduce(np.maximum, values)
        case _:
            raise AssertionError(f"{function} passed the whitelist")  # a fault of this module
    return result
