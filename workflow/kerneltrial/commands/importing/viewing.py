"""Views in several steps: diagonals, repetitions; and the matrix whose diagonal is ones."""

from kerneltrial.commands.importing.building import Args, Building
from kerneltrial.commands.importing.messages import Node


def diagonal(b: Building, node: Node, args: Args) -> None:
    """Every (columns + 1)-th element of the two axes in one."""
    source, shape, offset = args["self"], b.shapes[args["self"]], args["offset"]
    first, second = args["dim1"] % len(shape), args["dim2"] % len(shape)
    rest = [d for d in range(len(shape)) if d not in (first, second)]
    lead, kind, columns = [shape[d] for d in rest], b.kinds[source], shape[second]
    moved = [*lead, shape[first], columns]
    b.put(f"{node.name}_p", "permute", (source,), moved, kind, {"dims": [*rest, first, second]})
    b.put(f"{node.name}_r", "reshape", (f"{node.name}_p",), [*lead, shape[first] * columns], kind)
    start = offset if offset >= 0 else -offset * columns
    attributes = {"dim": len(rest), "start": start, "step": columns + 1}
    b.put(node.name, "slice", (f"{node.name}_r",), node.shape, kind, attributes)


def eye(b: Building, node: Node, args: Args) -> None:
    """Ones where the row is the column."""
    rows, columns = node.shape
    b.put(f"{node.name}_i", "iota", (), (rows,), "int64", {"start": 0, "step": 1})
    b.put(f"{node.name}_r", "reshape", (f"{node.name}_i",), (rows, 1), "int64")
    b.put(f"{node.name}_c", "iota", (), (columns,), "int64", {"start": 0, "step": 1})
    b.put(f"{node.name}_e", "point", (f"{node.name}_r", f"{node.name}_c"), node.shape, "bool", {"fn": "eq"})
    b.put(node.name, "point", (f"{node.name}_e",), node.shape, node.dtype, {"fn": "to"})


def repeated(b: Building, node: Node, args: Args) -> None:
    """Axes of length 1 between the tensor's own, stretched."""
    source, times = args["self"], args["repeats"]
    own = [*[1] * (len(times) - len(b.shapes[source])), *b.shapes[source]]
    kind, apart = b.kinds[source], [one for size in own for one in (1, size)]
    wide = [one for pair in zip(times, own, strict=True) for one in pair]
    b.put(f"{node.name}_a", "reshape", (source,), apart, kind)
    b.put(f"{node.name}_w", "expand", (f"{node.name}_a",), wide, kind)
    b.put(node.name, "reshape", (f"{node.name}_w",), node.shape, kind)
