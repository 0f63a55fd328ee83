"""Which matrix product a contract's torch expression is, so that a vendor library can be asked for the same."""

import ast

from kerneltrial.inputs.calls import Product
from kerneltrial.records.contract import Array, Contract

_FUNCTIONS = frozenset({"matmul", "mm"})
_TRANSPOSES = frozenset({"T", "mT"})
_DTYPES = frozenset({"float16", "bfloat16", "float32", "float64"})


def product_of(contract: Contract) -> Product | None:
    """The product of two matrices that the contract computes, or None where its torch expression is none.

    Known are `torch.matmul(a, b)`, `torch.mm(a, b)` and `a @ b`, where each factor may be `a.T`, `a.mT` or `a.t()`. The
    expression is read, never run. Both factors and the one output have two axes and one float type.
    """
    try:
        factors = _factors(ast.parse(contract.torch.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):  # whatever the parser will not take is no product
        return None
    inputs = {array.name: array for array in contract.arrays if array.role == "input"}
    if factors is None or len(contract.outputs) != 1 or contract.outputs[0].role != "output":
        return None
    (left, left_transposed), (right, right_transposed) = factors
    if left not in inputs or right not in inputs or not _fit((inputs[left], inputs[right], contract.outputs[0])):
        return None
    return Product(
        left=left,
        right=right,
        out=contract.outputs[0].name,
        left_transposed=left_transposed,
        right_transposed=right_transposed,
        tf32=contract.tf32,
    )


def _fit(arrays: tuple[Array, ...]) -> bool:
    return all(len(array.shape) == 2 for array in arrays) and (
        len({array.dtype for array in arrays}) == 1 and arrays[0].dtype in _DTYPES
    )


def _factors(node: ast.expr) -> tuple[tuple[str, bool], tuple[str, bool]] | None:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), args=[left, right], keywords=[]):
            pair = (left, right) if name in _FUNCTIONS else None
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):
            pair = (left, right)
        case _:
            pair = None
    if pair is None:
        return None
    one, other = _factor(pair[0]), _factor(pair[1])
    return None if one is None or other is None else (one, other)


def _factor(node: ast.expr) -> tuple[str, bool] | None:
    """A factor's name, and whether it is transposed."""
    match node:
        case ast.Name(id=name):
            return name, False
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if attribute in _TRANSPOSES:
            return name, True
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="t"), args=[], keywords=[]):
            return name, True
    return None
