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
        for taken in traced.given:
            _check_size(taken.name, taken.shape)
        for one in traced.constants:
            if len(one.values) != math.prod(one.shape):
                raise InputProblem(f"constant {one.name} has {len(one.values)} values for shape {list(one.shape)}")
            self.put(one.name, "constant", (), one.shape, one.dtype, {"values": one.values})

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
        _check_size(node.op, node.shape)
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
        args = self.args_of(node)
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
        _check_size(form, op.shape)
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
        shape = broadcast([self.shapes[one] for one in operands if isinstance(one, str)])
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

    def reshape(self, node: Node, source: str, shape: Sequence[int] | None = None) -> None:
        self.put(node.name, "reshape", (source,), node.shape if shape is None else shape, self.kinds[source])

    def args_of(self, node: Node) -> dict[str, Any]:
        """A node's arguments, with tensors by the names of those that hold their values."""
        return {key: self._operand(value) for key, value in node.args.items()}


def _check_size(what: str, shape: Shape) -> None:
    if math.prod(shape) > _MOST_ELEMENTS:
        many = f"{math.prod(shape)} elements; at most {_MOST_ELEMENTS} are taken"
        raise InputProblem(f"{what} makes {many}: make its shapes smaller")


def _is_plain(value: Any) -> bool:
    """Numbers, or lists of them: what was handed over becomes text that runs, so that nothing else may be in it."""
    if isinstance(value, list | tuple):
        return all(_is_plain(one) for one in value)
    return isinstance(value, bool | int | float)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    rank = max((len(one) for one in shapes), default=0)
    padded = [(1,) * (rank - len(one)) + tuple(one) for one in shapes]
    return tuple(max(sizes) if min(sizes) else 0 for sizes in zip(*padded, strict=True)) if rank else ()
