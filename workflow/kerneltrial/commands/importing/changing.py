"""What a change in place becomes once it is removed: a new tensor, made of the old one and what was written to it."""

import math

from kerneltrial.commands.importing.building import Args, Building
from kerneltrial.commands.importing.messages import Node
from kerneltrial.inputs.problem import InputProblem

_MOST_PLACES = 4096  # of an axis that is written to by steps: each place is a number in the kernel's text


def copied(b: Building, node: Node, args: Args) -> None:
    """`copy(self, src)`: src in the shape and the dtype of self."""
    source = args["src"]
    if b.kinds[source] != node.dtype:
        source = b.put(f"{node.name}_t", "point", (source,), b.shapes[source], node.dtype, {"fn": "to"})
    if b.shapes[source] != node.shape:
        source = b.put(f"{node.name}_e", "expand", (source,), node.shape, node.dtype)
    b.alias[node.name] = source


def slice_scattered(b: Building, node: Node, args: Args) -> None:
    """`slice_scatter(self, src, dim, start, end, step)`: self, with src in the place of a slice."""
    whole, part = args["self"], args["src"]
    dim, step = args["dim"] % len(node.shape), args.get("step") or 1
    size, many = node.shape[dim], b.shapes[part][dim]
    start = args.get("start") or 0
    start = min(max(start + size if start < 0 else start, 0), size)
    if many == 0:
        b.alias[node.name] = whole
    elif step == 1:
        before, after = _cut(b, node, whole, dim, (0, start)), _cut(b, node, whole, dim, (start + many, size))
        parts = [one for one in (before, part, after) if one]
        b.put(node.name, "cat", parts, node.shape, node.dtype, {"dim": dim})
    else:
        _by_steps(b, node, (whole, part), dim, range(start, start + many * step, step))


def _cut(b: Building, node: Node, whole: str, dim: int, span: tuple[int, int]) -> str:
    """The part of `whole` within `span`, or "" where that is empty."""
    start, end = span
    if start >= end:
        return ""
    shape = [end - start if axis == dim else size for axis, size in enumerate(node.shape)]
    attributes = {"dim": dim, "start": start, "step": 1}
    return b.put(f"{node.name}_{start}", "slice", (whole,), shape, node.dtype, attributes)


def _by_steps(b: Building, node: Node, both: tuple[str, str], dim: int, written: range) -> None:
    """Old and new side by side, and from there each place of the result by its number."""
    size = node.shape[dim]
    if size > _MOST_PLACES:
        raise InputProblem(f"{node.op} by steps along an axis of {size} is not known; {_MOST_PLACES} at most are")
    wide = [size + len(written) if axis == dim else n for axis, n in enumerate(node.shape)]
    b.put(f"{node.name}_b", "cat", both, wide, node.dtype, {"dim": dim})
    places = tuple(float(size + written.index(at) if at in written else at) for at in range(size))
    b.put(f"{node.name}_p", "constant", (), (size,), "int64", {"values": places})
    b.put(node.name, "index", (f"{node.name}_b", f"{node.name}_p"), node.shape, node.dtype, {"at": dim})


def put_by_mask(b: Building, node: Node, args: Args) -> None:
    """`index_put(self, [mask], number)`: the number where the mask holds; other forms are not known."""
    indices, value = args["indices"], args["values"]
    mask = indices[0] if len(indices) == 1 else None
    if args.get("accumulate") or mask is None or b.kinds[mask] != "bool":
        raise InputProblem(f"{node.op} by indices is not known: a place may be written twice")
    if math.prod(b.shapes[value]) != 1:
        raise InputProblem(f"{node.op} of more than one number by a mask is not known: how many depends on values")
    shape = (*b.shapes[mask], *[1] * (len(node.shape) - len(b.shapes[mask])))
    b.put(f"{node.name}_m", "reshape", (mask,), shape, "bool")
    b.put(f"{node.name}_v", "reshape", (value,), (), b.kinds[value])
    operands = (f"{node.name}_m", f"{node.name}_v", args["self"])
    b.put(node.name, "point", operands, node.shape, node.dtype, {"fn": "where"})
