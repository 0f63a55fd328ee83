"""A contract's torch expression as a Python function: read by a whitelist, so that it computes and does no more."""

import ast
from collections.abc import Callable, Sequence
from typing import Any

from kerneltrial.inputs.problem import InputProblem

MAXIMUM_LENGTH = 2000
_NODES = (
    ast.Expression,
    ast.Call,
    ast.keyword,
    ast.Attribute,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.operator,
    ast.unaryop,
    ast.Compare,
    ast.cmpop,
    ast.Tuple,
    ast.List,
    ast.Subscript,
    ast.Slice,
    ast.NamedExpr,
    ast.Store,
)
# Parts of torch that read files, start processes or load code; an expression has no use for them.
_CLOSED = frozenset(
    {"classes", "compile", "cpp_extension", "cuda", "distributed", "export", "from_file", "hub", "jit", "library"}
    | {
        "load",
        "load_library",
        "multiprocessing",
        "onnx",
        "ops",
        "package",
        "profiler",
        "save",
        "serialization",
        "utils",
    }
)


def function_of(expression: str, names: Sequence[str]) -> Callable[[Any], Callable[..., Any]]:
    """Return what makes, from the module `torch`, a function of these names that computes the expression.

    Raises
    ------
    InputProblem
        It is no expression, or speaks of more than `torch` and the names.
    """
    text = expression.strip()
    try:
        tree = ast.parse(text, mode="eval") if len(text) <= MAXIMUM_LENGTH else None
    except (SyntaxError, ValueError, RecursionError) as fault:
        raise InputProblem(f"torch: {text[:80]!r} is no expression ({fault})") from None
    if tree is None:
        raise InputProblem(f"torch: the expression is longer than {MAXIMUM_LENGTH} characters")
    named = {node.target.id for node in ast.walk(tree) if isinstance(node, ast.NamedExpr)}
    if named & {*names, "torch"}:
        raise InputProblem(f"torch: {', '.join(sorted(named & {*names, 'torch'}))} is given a value; take another name")
    for node in ast.walk(tree):
        _check(node, (*names, *named))
    source = f"def expression({', '.join(names)}):\n    return ({text})\n"
    code = compile(source, "<contract.torch>", "exec")

    def made(torch: Any) -> Callable[..., Any]:
        place: dict[str, Any] = {"torch": torch}
        exec(code, place)
        function: Callable[..., Any] = place["expression"]
        return function

    return made


def _check(node: ast.AST, names: Sequence[str]) -> None:
    if not isinstance(node, _NODES):
        raise InputProblem(f"torch: a {type(node).__name__} is not allowed; allowed: calls of torch and arithmetic")
    if isinstance(node, ast.Name) and node.id not in (*names, "torch"):
        raise InputProblem(f"torch: {node.id!r} is unknown; known are torch, {', '.join(names)}")
    if isinstance(node, ast.Attribute) and (node.attr.startswith("_") or node.attr in _CLOSED):
        raise InputProblem(f"torch: .{node.attr} is not allowed in an expression")
