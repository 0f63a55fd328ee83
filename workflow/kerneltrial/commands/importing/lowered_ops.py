"""Which aten operations are known, and what each becomes; elementwise ones are those of `points`."""

from collections.abc import Callable
from typing import Any

from kerneltrial.commands.importing import lowered_forms as forms
from kerneltrial.commands.importing.building import Args, Building
from kerneltrial.commands.importing.changing import copied, put_by_mask, slice_scattered
from kerneltrial.commands.importing.integral import divided, inverted
from kerneltrial.commands.importing.messages import Node
from kerneltrial.commands.importing.viewing import diagonal, eye, repeated


def _permuted(b: Building, node: Node, args: Args) -> None:
    source = args["self"]
    dims = [d % len(self_shape) for d in args["dims"]] if (self_shape := b.shapes[source]) else []
    b.put(node.name, "permute", (source,), node.shape, b.kinds[source], {"dims": dims})


LOWERED: dict[str, Callable[[Building, Node, Args], Any]] = {
    "add": lambda b, n, a: forms.added(b, n, a, "add"),
    "sub": lambda b, n, a: forms.added(b, n, a, "sub"),
    "div": divided,
    "bitwise_not": inverted,
    "__lshift__": lambda b, n, a: b.point(n, "bitwise_left_shift", (a["self"], a["other"])),
    "__rshift__": lambda b, n, a: b.point(n, "bitwise_right_shift", (a["self"], a["other"])),
    "clamp": forms.clamp,
    "clamp_min": lambda b, n, a: b.point(n, "maximum", (a["self"], a["min"])),
    "clamp_max": lambda b, n, a: b.point(n, "minimum", (a["self"], a["max"])),
    "where": lambda b, n, a: b.point(
        n, "where", (a.get("condition", a.get("pred")), a.get("self", a.get("a")), a.get("other", a.get("b")))
    ),
    "_to_copy": lambda b, n, a: b.point(n, "to", (a["self"],)),
    "convert_element_type": lambda b, n, a: b.point(n, "to", (a["a"],)),
    "sum": lambda b, n, a: forms.sum_like(b, n, a, "sum"),
    "prod": lambda b, n, a: forms.sum_like(b, n, a, "prod"),
    "amax": lambda b, n, a: forms.sum_like(b, n, a, "max"),
    "amin": lambda b, n, a: forms.sum_like(b, n, a, "min"),
    "max": lambda b, n, a: forms.sum_like(b, n, a, "max"),
    "min": lambda b, n, a: forms.sum_like(b, n, a, "min"),
    "any": lambda b, n, a: forms.sum_like(b, n, a, "any"),
    "argmax": lambda b, n, a: forms.sum_like(b, n, a, "argmax"),
    "argmin": lambda b, n, a: forms.sum_like(b, n, a, "argmin"),
    "var": lambda b, n, a: forms.sum_like(b, n, a, "var"),
    "view": lambda b, n, a: b.reshape(n, a["self"]),
    "reshape": lambda b, n, a: b.reshape(n, a["self"]),
    "_unsafe_view": lambda b, n, a: b.reshape(n, a["self"]),
    "unsqueeze": lambda b, n, a: b.reshape(n, a["self"]),
    "squeeze": lambda b, n, a: b.reshape(n, a.get("self", a.get("a"))),
    "as_strided": forms.strided,
    "broadcast_in_dim": forms.broadcast_in_dim,
    "expand": lambda b, n, a: b.put(n.name, "expand", (a["self"],), n.shape, b.kinds[a["self"]]),
    "permute": _permuted,
    "flip": forms.flip,
    "diagonal": diagonal,
    "repeat": repeated,
    "copy": copied,
    "slice_scatter": slice_scattered,
    "index_put": put_by_mask,
    "slice": forms.slice,
    "select": forms.select,
    "constant_pad_nd": forms.pad,
    "cat": lambda b, n, a: b.put(
        n.name, "cat", a["tensors"], n.shape, n.dtype, {"dim": a.get("dim", 0) % len(n.shape)}
    ),
    "arange": lambda b, n, a: b.put(
        n.name, "iota", (), n.shape, n.dtype, {"start": a.get("start") or 0, "step": a.get("step") or 1}
    ),
    "iota": lambda b, n, a: b.put(n.name, "iota", (), n.shape, n.dtype, {"start": a["start"], "step": a["step"]}),
    "eye": eye,
    "full": lambda b, n, a: forms.full(b, n, a["fill_value"]),
    "full_like": lambda b, n, a: forms.full(b, n, a["fill_value"]),
    "empty": lambda b, n, a: forms.full(b, n, 0.0),
    "empty_like": lambda b, n, a: forms.full(b, n, 0.0),
    "empty_permuted": lambda b, n, a: forms.full(
        b, n, 0.0
    ),  # PyTorch leaves open what it holds; whoever reads it is wrong
    "scalar_tensor": lambda b, n, a: forms.full(b, n, a["s"]),
    "mm": forms.matmul,
    "bmm": forms.matmul,
    "convolution": forms.convolution,
    "max_pool2d_with_indices": lambda b, n, a: forms.pool(b, n, a, "max"),
    "max_pool3d_with_indices": lambda b, n, a: forms.pool(b, n, a, "max"),
    "avg_pool2d": lambda b, n, a: forms.pool(b, n, a, "avg"),
    "avg_pool3d": lambda b, n, a: forms.pool(b, n, a, "avg"),
    "cumsum": lambda b, n, a: b.put(
        n.name, "scan", (a["self"],), n.shape, n.dtype, {"fn": "sum", "dim": a["dim"] % len(n.shape)}
    ),
    "cumprod": lambda b, n, a: b.put(
        n.name, "scan", (a["self"],), n.shape, n.dtype, {"fn": "prod", "dim": a["dim"] % len(n.shape)}
    ),
    "gather": forms.gather,
    "index_select": forms.index_select,
    "index": forms.index,
    "getitem": forms.getitem,
}
