"""What becomes of aten operations that take more than one line: functions of the building, a node and its arguments."""

import math
from typing import Any

from kerneltrial.commands.importing.building import Args, Building, broadcast
from kerneltrial.commands.importing.messages import Kind, Node
from kerneltrial.inputs.problem import InputProblem


def sum_like(b: Building, node: Node, args: Args, fn: str) -> None:
    source = args.get("self", args.get("inp", args.get("a", args.get("input"))))
    shape = b.shapes[source]
    dims = args.get("dim", args.get("dims"))
    dims = list(range(len(shape))) if dims in (None, []) else [dims] if isinstance(dims, int) else dims
    gone = sorted(d % max(1, len(shape)) for d in dims)
    flat = [size for d, size in enumerate(shape) if d not in gone]
    kind: Kind = node.dtype
    if not shape:
        b.alias[node.name] = source
        return
    attributes = {"fn": fn, "dims": gone, "correction": _correction(args)}
    name = b.put(
        node.name if flat == list(node.shape) else f"{node.name}_r", "reduce", (source,), flat, kind, attributes
    )
    if name != node.name:
        b.put(node.name, "reshape", (name,), node.shape, kind)


def broadcast_in_dim(b: Building, node: Node, args: Args) -> None:
    source, places = args["a"], args["broadcast_dimensions"]
    ones = [1] * len(node.shape)
    for place, size in zip(places, b.shapes[source], strict=True):
        ones[place] = size
    b.put(f"{node.name}_r", "reshape", (source,), ones, b.kinds[source])
    b.put(node.name, "expand", (f"{node.name}_r",), node.shape, b.kinds[source])


def slice(b: Building, node: Node, args: Args) -> None:
    source, dim = args["self"], args["dim"] % len(b.shapes[args["self"]])
    size, start = b.shapes[source][dim], args.get("start") or 0
    start = min(max(start + size if start < 0 else start, 0), size)
    attributes = {"dim": dim, "start": start, "step": args.get("step") or 1}
    b.put(node.name, "slice", (source,), node.shape, b.kinds[source], attributes)


def select(b: Building, node: Node, args: Args) -> None:
    source, dim = args["self"], args["dim"] % len(b.shapes[args["self"]])
    shape = list(b.shapes[source])
    at, shape[dim] = args["index"] % shape[dim], 1
    kind = b.kinds[source]
    b.put(f"{node.name}_s", "slice", (source,), shape, kind, {"dim": dim, "start": at, "step": 1})
    b.reshape(node, f"{node.name}_s")


def pad(b: Building, node: Node, args: Args) -> None:
    source, pads, shape = args["self"], args["pad"], b.shapes[args["self"]]
    if any(one < 0 for one in pads):
        raise InputProblem("constant_pad_nd that cuts off is not known")
    low = [0] * len(shape)
    for axis in range(len(pads) // 2):
        low[len(shape) - 1 - axis] = pads[2 * axis]
    b.put(
        node.name,
        "pad",
        (source,),
        node.shape,
        b.kinds[source],
        {"low": low, "value": float(args.get("value") or 0)},
    )


def matmul(b: Building, node: Node, args: Args) -> None:
    left, right = args["self"], args["mat2"]
    if b.kinds[left] != "float32":
        raise InputProblem(f"{node.op} of {b.kinds[left]} is not known")
    b.put(node.name, "matmul", (left, right), node.shape, node.dtype)


def convolution(b: Building, node: Node, args: Args) -> None:
    rank = len(node.shape) - 2
    attributes: dict[str, Any] = {key: _list(args[key], rank) for key in ("stride", "padding", "dilation")}
    attributes |= {"transposed": bool(args["transposed"]), "groups": int(args["groups"])}
    bias = args.get("bias")
    name = f"{node.name}_c" if bias is not None else node.name
    b.put(name, "conv", (args["input"], args["weight"]), node.shape, node.dtype, attributes)
    if bias is not None:
        b.put(f"{node.name}_b", "reshape", (bias,), (node.shape[1], *[1] * rank), node.dtype)
        b.put(node.name, "point", (name, f"{node.name}_b"), node.shape, node.dtype, {"fn": "add"})


def pool(b: Building, node: Node, args: Args, fn: str) -> None:
    rank = len(args["kernel_size"]) if isinstance(args["kernel_size"], list) else 2
    kernel = _list(args["kernel_size"], rank)
    attributes = {
        "fn": fn,
        "kernel": kernel,
        "stride": _list(args.get("stride") or kernel, rank),
        "padding": _list(args.get("padding") or 0, rank),
        "dilation": _list(args.get("dilation") or 1, rank),
        "include": bool(args.get("count_include_pad", True)),
        "divisor": args.get("divisor_override") or 0,
    }
    if args.get("ceil_mode"):
        raise InputProblem(f"{node.op} with ceil_mode is not known")
    b.put(node.name, "pool", (args["self"],), node.shape, node.dtype, attributes)


def getitem(b: Building, node: Node, args: Args) -> None:
    origin = b.nodes[str(args["self"])] if isinstance(args["self"], str) else None
    word = origin.op.split(".")[1] if origin else ""
    if args["index"] == 1 and word in ("max", "min"):
        assert origin is not None
        sum_like(b, node, b.args_of(origin), f"arg{word}")
    elif args["index"] == 0:
        b.alias[node.name] = str(args["self"])
    else:
        raise InputProblem(f"result {args['index']} of {origin.op if origin else 'something'} is not known")


def gather(b: Building, node: Node, args: Args) -> None:
    source, index = args["self"], args["index"]
    dim = args["dim"] % len(b.shapes[source])
    b.put(node.name, "take", (source, index), node.shape, b.kinds[source], {"dim": dim})


def index_select(b: Building, node: Node, args: Args) -> None:
    dim = args["dim"] % len(b.shapes[args["self"]])
    b.put(node.name, "index", (args["self"], args["index"]), node.shape, b.kinds[args["self"]], {"at": dim})


def index(b: Building, node: Node, args: Args) -> None:
    places = [at for at, one in enumerate(args["indices"]) if one is not None]
    if places != list(range(places[0], places[-1] + 1)):
        raise InputProblem("index with tensors that do not stand side by side is not known")
    tensors = [args["indices"][at] for at in places]
    if any(b.kinds[one] == "bool" for one in tensors):
        raise InputProblem("index by a mask is not known: its result's shape depends on values")
    shape = broadcast([b.shapes[one] for one in tensors])
    spread = [b.put(f"{node.name}_{i}", "expand", (one,), shape, b.kinds[one]) for i, one in enumerate(tensors)]
    b.put(node.name, "index", (args["self"], *spread), node.shape, b.kinds[args["self"]], {"at": places[0]})


def full(b: Building, node: Node, value: float) -> None:
    b.put(f"{node.name}_f", "constant", (), (), node.dtype, {"values": (float(value),)})
    b.put(node.name, "expand", (f"{node.name}_f",), node.shape, node.dtype)


def clamp(b: Building, node: Node, args: Args) -> None:
    asked = (("maximum", args.get("min")), ("minimum", args.get("max")))
    bounds = [(fn, bound) for fn, bound in asked if bound is not None]
    source, names = args["self"], [f"{node.name}_l", node.name]
    for (fn, bound), name in zip(bounds, names[-len(bounds) :], strict=True):
        source = b.put(name, "point", (source, bound), node.shape, node.dtype, {"fn": fn})


def added(b: Building, node: Node, args: Args, fn: str) -> None:
    other, alpha = args["other"] if "other" in args else args["b"], args.get("alpha", 1)
    if alpha not in (None, 1):
        other = b.point(node, "mul", (other, alpha), f"{node.name}_a") if isinstance(other, str) else other * alpha
    b.point(node, fn, (args.get("self", args.get("a")), other))


def strided(b: Building, node: Node, args: Args) -> None:
    source, whole = args["self"], 1
    for size, stride in zip(reversed(node.shape), reversed(args["stride"]), strict=True):
        if size != 1 and stride != whole:
            raise InputProblem("as_strided that is no plain reshape is not known")
        whole *= size
    if whole != math.prod(b.shapes[source]) or args.get("storage_offset"):
        raise InputProblem("as_strided that is no plain reshape is not known")
    b.reshape(node, source)


def flip(b: Building, node: Node, args: Args) -> None:
    source = args["self"]
    dims = [d % len(b.shapes[source]) for d in args["dims"]]
    b.put(node.name, "flip", (source,), node.shape, b.kinds[source], {"dims": dims})


def _list(value: Any, rank: int) -> list[int]:
    values = [value] * rank if isinstance(value, int) else list(value)
    return values * rank if len(values) == 1 else values


def _correction(args: Args) -> float:
    value = args.get("correction")
    return 1.0 if value is None else float(value)
