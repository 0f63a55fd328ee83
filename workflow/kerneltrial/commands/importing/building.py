"""Operations of `graph` as they are worked out from aten operations, one node after another."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kerneltrial.commands.importing.graph import Form, Op, Operand, Shape
from kerneltrial.commands.importing.messages import Kind, Node, Traced
from kerneltrial.commands.importing.points import POINTS
from kerneltrial.commands.importing.shape_rules import follows
from kerneltrial.inputs.problem import InputProblem

Args = Mapping[str, Any]
_MOST_ELEMENTS = 1 << 28
_MOST_HELD = 1 << 29  # of all that the oracle holds: 8 GiB of values and of their errors
_VIEWS = ("permute", "expand", "slice", "flip")  # of these NumPy makes no copy
_SAME = ("clone", "alias", "detach", "lift_fresh_copy", "contiguous", "positive")


class Building:
    """Operations so far; `alias` maps names to those that hold the same values."""

    def __init__(self, traced: Traced, known: Mapping[str, Callable[["Building", Node, Args], Any]]) -> None:
        self.known = known
        self.shapes: dict[str, Shape] = {one.name: one.shape for one in traced.given}
        self.kinds: dict[str, Kind] = {one.name: one.dtype for one in traced.given}
        self.ops: dict[str, Op] = {}
        self.alias: dict[str, str] = {}
        self.nodes: dict[str, Node] = {}
        self.held = 0
        for taken in traced.given:
            self._hold(taken.name, taken.shape)
        for one in traced.constants:
            if len(one.values) != math.prod(one.shape):
                raise InputProblem(f"constant {one.name} has {len(one.values)} values for shape {list(one.shape)}")
            self.put(one.name, "constant", (), one.shape, one.dtype, {"values": one.values})

    def _hold(self, what: str, shape: Shape) -> None:
        """Count elements that the oracle keeps; raises `InputProblem` where they are too many."""
        many = math.prod(shape)
        self.held += many
        if many > _MOST_ELEMENTS or self.held > _MOST_HELD:
            raise InputProblem(
                f"{what} makes {many} elements, {self.held} with those before it; at most {_MOST_ELEMENTS} and "
                f"{_MOST_HELD} are taken: make its shapes smaller"
            )

    def meant(self, name: str) -> str:
        while name in self.alias:
            name = self.alias[name]
        if name not in self.shapes:
            raise InputProblem(f"{name} is used before it is there")
        return name

    def needed(self, outputs: Sequence[str]) -> list[Op]:
        """Operations that the outputs rest on, in order."""
        wanted = set(outputs)
        for op in reversed(self.ops.values()):
            if op.name in wanted:
                wanted |= {one for one in op.operands if isinstance(one, str)}
        return [op for op in self.ops.values() if op.name in wanted]

    def add(self, node: Node) -> None:
        if math.prod(node.shape) > _MOST_ELEMENTS:
            raise InputProblem(
                f"{node.op} makes {math.prod(node.shape)} elements; at most {_MOST_ELEMENTS} are taken: make its "
                "shapes smaller"
            )
        self.nodes[node.name] = node
        try:
            self._add(node)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError):
            raise InputProblem(f"{node.op} in this form is not known") from None

    def _add(self, node: Node) -> None:
        space, _, rest = node.op.partition(".")
        word = rest.partition(".")[0] if space in ("aten", "prims") else node.op
        inplace = word.endswith("_") and not word.startswith("_")
        word = word.rstrip("_") if inplace else word
        args = {key: self._operand(value) for key, value in node.args.items()}
        if word in _SAME:
            self.alias[node.name] = str(args["self" if "self" in args else "a"])
        elif word in self.known:
            self.known[word](self, node, args)
        elif word in POINTS:
            self._point(node, word, args)
        else:
            raise InputProblem(f"the operation {node.op} is not known")
        if inplace:
            self._replaced(node)
        made = self.meant(node.name) if node.name in self.alias else node.name
        if made in self.shapes and self.shapes[made] != node.shape and node.op != "getitem":
            raise InputProblem(f"{node.op} was worked out as {list(self.shapes[made])}, torch says {list(node.shape)}")

    def _replaced(self, node: Node) -> None:
        """A change in place: whoever speaks of the tensor from now on means the new one."""
        changed = self.meant(str(node.args["self"]["$"]))
        op = self.ops.get(changed)
        if op is None or op.form in ("reshape", "permute", "expand", "slice", "flip"):
            raise InputProblem(f"{node.op} changes an input or a view in place, which is not known")
        self.alias[changed] = node.name

    def _operand(self, value: Any) -> Any:
        if isinstance(value, dict) and set(value) == {"$"}:
            return self.meant(str(value["$"]))
        if value in ("inf", "-inf", "nan"):
            return float(value)
        if isinstance(value, list | tuple):
            return [self._operand(one) for one in value]
        return value

    def put(
        self,
        name: str,
        form: Form,
        operands: Sequence[Operand],
        shape: Sequence[int],
        kind: Kind,
        attributes: Mapping[str, Any] | None = None,
    ) -> str:
        words = dict(attributes or {})
        if not all(one in self.shapes if isinstance(one, str) else _is_plain(one) for one in operands):
            raise InputProblem(f"{name}: an operand is no tensor and no number")
        if not all(key == "fn" or _is_plain(value) for key, value in words.items()):
            raise InputProblem(f"{name}: what says how {form} is done is no number")
        op = Op(name, form, tuple(operands), tuple(shape), kind, words)
        tensors = [self.shapes[one] for one in operands if isinstance(one, str)]
        if 0 in op.shape:
            raise InputProblem(f"{form} makes a tensor without elements, {list(op.shape)}, which is not known")
        if not follows(op, tensors):
            held = ", ".join(str(list(one)) for one in tensors) or "nothing"
            raise InputProblem(f"{form} of {held} to {list(op.shape)} is not known: its shape does not follow")
        if form not in _VIEWS:
            self._hold(form, op.shape)
        self.ops[name], self.shapes[name], self.kinds[name] = op, op.shape, kind
        return name

    def _point(self, node: Node, fn: str, args: Args) -> None:
        operands = [value for key, value in args.items() if key in ("self", "a", "other", "b", "exponent")]
        self.point(node, fn, operands[: POINTS[fn].operands])

    def point(self, node: Node, fn: str, operands: Sequence[Operand], name: str = "") -> str:
        if (
            any(not isinstance(one, str | int | float | bool) for one in operands)
            or len(operands) != POINTS[fn].operands
        ):
            raise InputProblem(f"{node.op} in this form is not known")
        shape = _broadcast([self.shapes[one] for one in operands if isinstance(one, str)])
        boolean = POINTS[fn].boolean
        if boolean:
            kind: Kind = "bool"
        elif name:
            kind = next(
                (self.kinds[o] for o in operands if isinstance(o, str) and self.kinds[o] == "float32"), node.dtype
            )
        else:
            kind = node.dtype
        return self.put(name or node.name, "point", operands, shape, kind, {"fn": fn})

    # what takes more than one line

    def sum_like(self, node: Node, args: Args, fn: str) -> None:
        source = args.get("self", args.get("inp", args.get("a", args.get("input"))))
        shape = self.shapes[source]
        dims = args.get("dim", args.get("dims"))
        dims = list(range(len(shape))) if dims in (None, []) else [dims] if isinstance(dims, int) else dims
        gone = sorted(d % max(1, len(shape)) for d in dims)
        flat = [size for d, size in enumerate(shape) if d not in gone]
        kind: Kind = node.dtype
        if not shape:
            self.alias[node.name] = source
            return
        attributes = {"fn": fn, "dims": gone, "correction": _correction(args)}
        name = self.put(
            node.name if flat == list(node.shape) else f"{node.name}_r", "reduce", (source,), flat, kind, attributes
        )
        if name != node.name:
            self.put(node.name, "reshape", (name,), node.shape, kind)

    def reshape(self, node: Node, source: str, shape: Sequence[int] | None = None) -> None:
        self.put(node.name, "reshape", (source,), node.shape if shape is None else shape, self.kinds[source])

    def broadcast_in_dim(self, node: Node, args: Args) -> None:
        source, places = args["a"], args["broadcast_dimensions"]
        ones = [1] * len(node.shape)
        for place, size in zip(places, self.shapes[source], strict=True):
            ones[place] = size
        self.put(f"{node.name}_r", "reshape", (source,), ones, self.kinds[source])
        self.put(node.name, "expand", (f"{node.name}_r",), node.shape, self.kinds[source])

    def slice(self, node: Node, args: Args) -> None:
        source, dim = args["self"], args["dim"] % len(self.shapes[args["self"]])
        size, start = self.shapes[source][dim], args.get("start") or 0
        start = min(max(start + size if start < 0 else start, 0), size)
        attributes = {"dim": dim, "start": start, "step": args.get("step") or 1}
        self.put(node.name, "slice", (source,), node.shape, self.kinds[source], attributes)

    def select(self, node: Node, args: Args) -> None:
        source, dim = args["self"], args["dim"] % len(self.shapes[args["self"]])
        shape = list(self.shapes[source])
        at, shape[dim] = args["index"] % shape[dim], 1
        kind = self.kinds[source]
        self.put(f"{node.name}_s", "slice", (source,), shape, kind, {"dim": dim, "start": at, "step": 1})
        self.reshape(node, f"{node.name}_s")

    def pad(self, node: Node, args: Args) -> None:
        source, pads, shape = args["self"], args["pad"], self.shapes[args["self"]]
        if any(one < 0 for one in pads):
            raise InputProblem("constant_pad_nd that cuts off is not known")
        low = [0] * len(shape)
        for axis in range(len(pads) // 2):
            low[len(shape) - 1 - axis] = pads[2 * axis]
        self.put(
            node.name,
            "pad",
            (source,),
            node.shape,
            self.kinds[source],
            {"low": low, "value": float(args.get("value") or 0)},
        )

    def matmul(self, node: Node, args: Args) -> None:
        left, right = args["self"], args["mat2"]
        if self.kinds[left] != "float32":
            raise InputProblem(f"{node.op} of {self.kinds[left]} is not known")
        self.put(node.name, "matmul", (left, right), node.shape, node.dtype)

    def convolution(self, node: Node, args: Args) -> None:
        rank = len(node.shape) - 2
        attributes: dict[str, Any] = {key: _list(args[key], rank) for key in ("stride", "padding", "dilation")}
        attributes |= {"transposed": bool(args["transposed"]), "groups": int(args["groups"])}
        bias = args.get("bias")
        name = f"{node.name}_c" if bias is not None else node.name
        self.put(name, "conv", (args["input"], args["weight"]), node.shape, node.dtype, attributes)
        if bias is not None:
            self.put(f"{node.name}_b", "reshape", (bias,), (node.shape[1], *[1] * rank), node.dtype)
            self.put(node.name, "point", (name, f"{node.name}_b"), node.shape, node.dtype, {"fn": "add"})

    def pool(self, node: Node, args: Args, fn: str) -> None:
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
        self.put(node.name, "pool", (args["self"],), node.shape, node.dtype, attributes)

    def getitem(self, node: Node, args: Args) -> None:
        origin = self.nodes[str(args["self"])] if isinstance(args["self"], str) else None
        word = origin.op.split(".")[1] if origin else ""
        if args["index"] == 1 and word in ("max", "min"):
            assert origin is not None
            self.sum_like(node, self._args(origin), f"arg{word}")
        elif args["index"] == 0:
            self.alias[node.name] = str(args["self"])
        else:
            raise InputProblem(f"result {args['index']} of {origin.op if origin else 'something'} is not known")

    def _args(self, node: Node) -> dict[str, Any]:
        return {key: self._operand(value) for key, value in node.args.items()}

    def gather(self, node: Node, args: Args) -> None:
        source, index = args["self"], args["index"]
        dim = args["dim"] % len(self.shapes[source])
        self.put(node.name, "take", (source, index), node.shape, self.kinds[source], {"dim": dim})

    def index_select(self, node: Node, args: Args) -> None:
        dim = args["dim"] % len(self.shapes[args["self"]])
        self.put(node.name, "index", (args["self"], args["index"]), node.shape, self.kinds[args["self"]], {"at": dim})

    def index(self, node: Node, args: Args) -> None:
        places = [at for at, one in enumerate(args["indices"]) if one is not None]
        if places != list(range(places[0], places[-1] + 1)):
            raise InputProblem("index with tensors that do not stand side by side is not known")
        tensors = [args["indices"][at] for at in places]
        if any(self.kinds[one] == "bool" for one in tensors):
            raise InputProblem("index by a mask is not known: its result's shape depends on values")
        shape = _broadcast([self.shapes[one] for one in tensors])
        spread = [
            self.put(f"{node.name}_{i}", "expand", (one,), shape, self.kinds[one]) for i, one in enumerate(tensors)
        ]
        self.put(node.name, "index", (args["self"], *spread), node.shape, self.kinds[args["self"]], {"at": places[0]})

    def full(self, node: Node, value: float) -> None:
        self.put(f"{node.name}_f", "constant", (), (), node.dtype, {"values": (float(value),)})
        self.put(node.name, "expand", (f"{node.name}_f",), node.shape, node.dtype)

    def clamp(self, node: Node, args: Args) -> None:
        asked = (("maximum", args.get("min")), ("minimum", args.get("max")))
        bounds = [(fn, bound) for fn, bound in asked if bound is not None]
        source, names = args["self"], [f"{node.name}_l", node.name]
        for (fn, bound), name in zip(bounds, names[-len(bounds) :], strict=True):
            source = self.put(name, "point", (source, bound), node.shape, node.dtype, {"fn": fn})

    def added(self, node: Node, args: Args, fn: str) -> None:
        other, alpha = args["other"] if "other" in args else args["b"], args.get("alpha", 1)
        if alpha not in (None, 1):
            other = (
                self.point(node, "mul", (other, alpha), f"{node.name}_a") if isinstance(other, str) else other * alpha
            )
        self.point(node, fn, (args.get("self", args.get("a")), other))

    def divided(self, node: Node, args: Args) -> None:
        mode = args.get("rounding_mode")
        operands = (args.get("self", args.get("a")), args.get("other", args.get("b")))
        if mode is None:
            self.point(node, "div", operands)
        else:
            self.point(node, "div", operands, f"{node.name}_q")
            self.point(node, {"floor": "floor", "trunc": "trunc"}[mode], (f"{node.name}_q",))

    def strided(self, node: Node, args: Args) -> None:
        source, whole = args["self"], 1
        for size, stride in zip(reversed(node.shape), reversed(args["stride"]), strict=True):
            if size != 1 and stride != whole:
                raise InputProblem("as_strided that is no plain reshape is not known")
            whole *= size
        if whole != math.prod(self.shapes[source]) or args.get("storage_offset"):
            raise InputProblem("as_strided that is no plain reshape is not known")
        self.reshape(node, source)

    def flip(self, node: Node, args: Args) -> None:
        source = args["self"]
        dims = [d % len(self.shapes[source]) for d in args["dims"]]
        self.put(node.name, "flip", (source,), node.shape, self.kinds[source], {"dims": dims})


def _is_plain(value: Any) -> bool:
    """Numbers, or lists of them: what was handed over becomes text that runs, so that nothing else may be in it."""
    if isinstance(value, list | tuple):
        return all(_is_plain(one) for one in value)
    return isinstance(value, bool | int | float)


def _list(value: Any, rank: int) -> list[int]:
    values = [value] * rank if isinstance(value, int) else list(value)
    return values * rank if len(values) == 1 else values


def _correction(args: Args) -> float:
    value = args.get("correction")
    return 1.0 if value is None else float(value)


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    rank = max((len(one) for one in shapes), default=0)
    padded = [(1,) * (rank - len(one)) + tuple(one) for one in shapes]
    return tuple(max(sizes) if min(sizes) else 0 for sizes in zip(*padded, strict=True)) if rank else ()
