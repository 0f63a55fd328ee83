"""Integer expressions in a case's dimensions, such as ``ceil_div(m, 32)``.

Plans come from proposers, so an expression is hostile input: it is parsed by a whitelist over ``ast`` and never
handed to ``eval``. Length, depth and the magnitude of every intermediate value are limited, so that no expression can
cost more than microseconds.
"""

import ast
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache

from kerneltrial.inputs.problem import InputProblem

MAXIMUM_LENGTH = 200
MAXIMUM_DEPTH = 24
MAGNITUDE = 2**62  # every step stays below, so that results fit a signed 64-bit integer with room
MAXIMUM_ARGUMENTS = 8

# Only these characters can occur; it keeps strings, attributes, brackets, newlines and non-ASCII names from the parser.
_CHARACTERS = re.compile(r"[A-Za-z0-9_ +\-*/%<>=!(),]*")


class ExpressionProblem(InputProblem):
    """The expression is not allowed, or has no value for these dimensions."""


def _ceil_div(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


FUNCTIONS: Mapping[str, tuple[Callable[..., int], int, int]] = {
    "ceil_div": (_ceil_div, 2, 2),
    "min": (min, 2, MAXIMUM_ARGUMENTS),
    "max": (max, 2, MAXIMUM_ARGUMENTS),
}
_BINARY: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[int], int]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: lambda value: int(not value),
}
RESERVED = frozenset({*FUNCTIONS, "and", "or", "not", "int32", "int64"})
GRAMMAR = "integers, dimensions, + - * // %, comparisons, and/or/not, ceil_div, min, max"


def evaluate(expression: str, dimensions: Mapping[str, int]) -> int:
    """Return the value of an expression; comparisons and logic give 0 or 1, as integers.

    Division and remainder round toward minus infinity, as Python's do.

    Raises
    ------
    ExpressionProblem
        Where the text is outside of the whitelist, a name is no dimension, something is divided by zero, or a step
        reaches 2**62 in magnitude.
    """
    tree = _parsed(expression)
    try:
        return _value(tree, dimensions)
    except _NoValue as fault:
        raise ExpressionProblem(f"expression {expression!r}: {fault}") from None


@lru_cache(maxsize=4096)
def names(expression: str) -> frozenset[str]:
    """Return the dimensions that an expression speaks of; raises `ExpressionProblem` where it is not allowed."""
    called = {id(node.func) for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Call)}
    return frozenset(
        node.id for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Name) and id(node) not in called
    )


def tree(expression: str) -> ast.expr:
    """Return the parsed expression, of allowed nodes alone; raises `ExpressionProblem` where it is not allowed."""
    return _parsed(expression)


class _NoValue(Exception):
    """What is wrong, without the expression's own text."""


@lru_cache(maxsize=4096)
def _parsed(expression: str) -> ast.expr:
    shown = expression if len(expression) <= 80 else expression[:77] + "..."
    try:
        return _parse(expression)
    except _NoValue as fault:
        raise ExpressionProblem(f"expression {shown!r}: {fault}") from None


def _parse(expression: str) -> ast.expr:
    if len(expression) > MAXIMUM_LENGTH:
        raise _NoValue(f"is {len(expression)} characters long; at most {MAXIMUM_LENGTH} are allowed")
    if not _CHARACTERS.fullmatch(expression):
        bad = sorted(set(_CHARACTERS.sub("", expression)))
        raise _NoValue(f"holds {bad[0]!r}; allowed are {GRAMMAR}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _NoValue(f"cannot be parsed; allowed are {GRAMMAR}") from None
    _allow(tree, 0)
    return tree


def _allow(node: ast.expr, depth: int) -> None:
    if depth > MAXIMUM_DEPTH:
        raise _NoValue(f"is nested more than {MAXIMUM_DEPTH} deep")
    for child in _operands(node):
        _allow(child, depth + 1)


def _operands(node: ast.expr) -> list[ast.expr]:
    """Return the parts of an allowed node, or say why it is not allowed."""
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            if number >= MAGNITUDE:
                raise _NoValue(f"the number {str(number)[:24]} is not below 2**62")
            return []
        case ast.Name():
            return []
        case ast.BinOp() if type(node.op) in _BINARY:
            return [node.left, node.right]
        case ast.UnaryOp() if type(node.op) in _UNARY:
            return [node.operand]
        case ast.Compare() if all(type(op) in _COMPARISONS for op in node.ops):
            return [node.left, *node.comparators]
        case ast.BoolOp():
            return node.values
        case ast.Call():
            return _arguments(node)
        case ast.BinOp():
            raise _NoValue(f"the operator {_SYMBOLS.get(type(node.op), '?')} is not allowed; allowed are {GRAMMAR}")
    raise _NoValue(f"{_KINDS.get(type(node), 'this form')} is not allowed; allowed are {GRAMMAR}")


_SYMBOLS: Mapping[type[ast.operator], str] = {
    ast.Pow: "**",
    ast.Div: "/ (write // to divide)",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_KINDS: Mapping[type[ast.expr], str] = {
    ast.Constant: "a constant that is no integer",
    ast.Lambda: "lambda",
    ast.NamedExpr: "an assignment",
    ast.IfExp: "if/else",
    ast.Tuple: "a tuple",
    ast.Starred: "a star",
}


def _arguments(node: ast.Call) -> list[ast.expr]:
    if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
        called = node.func.id if isinstance(node.func, ast.Name) else "an expression"
        raise _NoValue(f"{called} cannot be called; allowed are {', '.join(FUNCTIONS)}")
    _, least, most = FUNCTIONS[node.func.id]
    if node.keywords or not least <= len(node.args) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise _NoValue(f"{node.func.id} takes {wanted} plain arguments")
    return node.args


def _value(node: ast.expr, dimensions: Mapping[str, int]) -> int:
    result = _step(node, dimensions)
    if not -MAGNITUDE < result < MAGNITUDE:
        raise _NoValue("a step reaches 2**62 in magnitude")
    return result


def _step(node: ast.expr, dimensions: Mapping[str, int]) -> int:
    def value(part: ast.expr) -> int:
        return _value(part, dimensions)

    try:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                return _dimension(name, dimensions)
            case ast.BinOp(left=left, op=op, right=right):
                return _BINARY[type(op)](value(left), value(right))
            case ast.UnaryOp(op=sign, operand=operand):
                return _UNARY[type(sign)](value(operand))
            case ast.BoolOp(op=ast.And(), values=values):
                return int(all(value(part) for part in values))
            case ast.BoolOp(values=values):
                return int(any(value(part) for part in values))
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                parts = [value(part) for part in (left, *comparators)]
                return int(all(_COMPARISONS[type(op)](*parts[i : i + 2]) for i, op in enumerate(ops)))
            case ast.Call(func=ast.Name(id=function), args=args):
                return FUNCTIONS[function][0](*(value(part) for part in args))
    except ZeroDivisionError:
        raise _NoValue("divides by zero") from None
    raise AssertionError(f"{type(node).__name__} passed the whitelist")  # a fault of this module


def _dimension(name: str, dimensions: Mapping[str, int]) -> int:
    if name not in dimensions:
        known = ", ".join(dimensions) or "none"
        raise _NoValue(f"{name!r} is no dimension; known are {known}")
    return int(dimensions[name])
