"""Whether the shape that is told of an operation is the one that follows from its operands. Pure.

The graph comes from a process that runs code which nobody has read. Oracle and baseline are written from these shapes,
so that none is believed: a shape that does not follow would have the baseline read past its arrays.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kerneltrial.commands.importing.graph import Op, Shape

_MOST_PADDED = 1 << 28  # elements of a padded input, which the oracle makes


def follows(op: Op, shapes: Sequence[Shape]) -> bool:
    """Whether `op.shape` follows from the shapes of its tensor operands, in order.

    Raises TypeError, ValueError, LookupError or ArithmeticError for attributes that no operation of the form has.
    """
    return all(size >= 1 for size in op.shape) and _RULES[op.form](op, shapes)


def _constant(op: Op, shapes: Sequence[Shape]) -> bool:
    return len(op.attributes["values"]) == op.size


def _point(op: Op, shapes: Sequence[Shape]) -> bool:
    rank = max((len(one) for one in shapes), default=0)
    return len(op.shape) == rank and all(_stretches(one, op.shape) for one in shapes) and _reached(shapes, op.shape)


def _stretches(shape: Shape, to: Shape) -> bool:
    """Whether a shape becomes `to` by repeating along axes of one element, and along new ones in front."""
    own = to[len(to) - len(shape) :] if shape else ()
    return len(shape) <= len(to) and all(mine in (1, size) for mine, size in zip(shape, own, strict=True))


def _reached(shapes: Sequence[Shape], shape: Shape) -> bool:
    """Whether each axis is as long as some operand's own."""
    return all(
        size == max(one[axis - len(shape)] for one in shapes if axis >= len(shape) - len(one))
        for axis, size in enumerate(shape)
    )


def _reshape(op: Op, shapes: Sequence[Shape]) -> bool:
    return math.prod(shapes[0]) == op.size


def _permute(op: Op, shapes: Sequence[Shape]) -> bool:
    dims = op.attributes["dims"]
    return sorted(dims) == list(range(len(shapes[0]))) and op.shape == tuple(shapes[0][d] for d in dims)


def _expand(op: Op, shapes: Sequence[Shape]) -> bool:
    return _stretches(shapes[0], op.shape)


def _slice(op: Op, shapes: Sequence[Shape]) -> bool:
    dim, start, step = (op.attributes[key] for key in ("dim", "start", "step"))
    last = start + (op.shape[dim] - 1) * step
    return start >= 0 and step >= 1 and last < shapes[0][dim] and _without(op.shape, dim) == _without(shapes[0], dim)


def _without(shape: Shape, *dims: int) -> Shape:
    return tuple(size for axis, size in enumerate(shape) if axis not in dims)


def _flip(op: Op, shapes: Sequence[Shape]) -> bool:
    return op.shape == shapes[0] and all(0 <= d < len(op.shape) for d in op.attributes["dims"])


def _pad(op: Op, shapes: Sequence[Shape]) -> bool:
    low = op.attributes["low"]
    return all(at >= 0 and at + size <= whole for at, size, whole in zip(low, shapes[0], op.shape, strict=True))


def _cat(op: Op, shapes: Sequence[Shape]) -> bool:
    dim = op.attributes["dim"]
    rest = all(_without(one, dim) == _without(op.shape, dim) and len(one) == len(op.shape) for one in shapes)
    return rest and sum(one[dim] for one in shapes) == op.shape[dim]


def _iota(op: Op, shapes: Sequence[Shape]) -> bool:
    return len(op.shape) == 1


def _reduce(op: Op, shapes: Sequence[Shape]) -> bool:
    dims = op.attributes["dims"]
    return all(0 <= d < len(shapes[0]) for d in dims) and op.shape == _without(shapes[0], *dims)


def _matmul(op: Op, shapes: Sequence[Shape]) -> bool:
    (*batch, m, k), (*others, inner, n) = shapes
    return batch == others and len(batch) <= 1 and k == inner and op.shape == (*batch, m, n)


def _conv(op: Op, shapes: Sequence[Shape]) -> bool:
    x, w = shapes
    a, groups = op.attributes, op.attributes["groups"]
    if groups < 1 or op.shape[0] != x[0] or not _windows_fit(a, w[2:], x[2:], op.shape[2:]):
        return False
    if a["transposed"]:
        return w[0] == x[1] and x[1] % groups == 0 and op.shape[1] == w[1] * groups
    return w[1] * groups == x[1] and op.shape[1] == w[0] and w[0] % groups == 0


def _windows_fit(a: Mapping[str, Any], kernel: Shape, sizes: Shape, made: Shape) -> bool:
    """Whether the windows that `made` counts lie in the padded input, and the padded input is no giant."""
    wide = 1
    for k, size, count, s, p, d in zip(kernel, sizes, made, a["stride"], a["padding"], a["dilation"], strict=True):
        if min(s, d) < 1 or p < 0 or k < 1:
            return False
        reach = d * (k - 1)
        if a.get("transposed"):
            least = (size - 1) * s - 2 * p + reach + 1  # PyTorch's output_padding adds less than a stride or a dilation
            if not least <= count < least + max(s, d):
                return False
            wide *= count + 2 * p
        else:
            if (size + 2 * p - reach - 1) // s + 1 != count:
                return False
            wide *= size + 2 * p
    return wide <= _MOST_PADDED


def _pool(op: Op, shapes: Sequence[Shape]) -> bool:
    kernel, source = tuple(op.attributes["kernel"]), shapes[0]
    rank = len(kernel)
    lead = len(source) - rank
    return (
        lead in (1, 2)
        and op.shape[:lead] == source[:lead]
        and _windows_fit(op.attributes, kernel, source[lead:], op.shape[lead:])
    )


def _scan(op: Op, shapes: Sequence[Shape]) -> bool:
    return op.shape == shapes[0] and 0 <= op.attributes["dim"] < len(op.shape)


def _take(op: Op, shapes: Sequence[Shape]) -> bool:
    source, index = shapes
    dim = op.attributes["dim"]
    fits = all(mine <= size for mine, size in zip(_without(index, dim), _without(source, dim), strict=True))
    return op.shape == index and fits and 0 <= dim < len(source)


def _index(op: Op, shapes: Sequence[Shape]) -> bool:
    source, *tensors = shapes
    at = op.attributes["at"]
    return (
        0 <= at <= len(source) - len(tensors)
        and len(set(tensors)) == 1
        and op.shape == (*source[:at], *tensors[0], *source[at + len(tensors) :])
    )


_RULES: dict[str, Callable[[Op, Sequence[Shape]], bool]] = {
    "constant": _constant,
    "point": _point,
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "slice": _slice,
    "flip": _flip,
    "pad": _pad,
    "cat": _cat,
    "iota": _iota,
    "reduce": _reduce,
    "matmul": _matmul,
    "conv": _conv,
    "pool": _pool,
    "scan": _scan,
    "take": _take,
    "index": _index,
}
