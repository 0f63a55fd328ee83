"""The few operations that an imported problem is made of, with static shapes; oracle and baseline come from them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kerneltrial.commands.importing.messages import Given, Kind

Form = Literal[
    "constant",
    "point",
    "reshape",
    "permute",
    "expand",
    "slice",
    "flip",
    "pad",
    "cat",
    "iota",
    "reduce",
    "matmul",
    "conv",
    "pool",
    "scan",
    "take",
    "index",
]
_VIEWS = ("permute", "expand", "slice", "flip")  # of these NumPy makes no copy
Shape = tuple[int, ...]
Operand = str | float | int | bool


@dataclass(frozen=True)
class Op:
    """One operation: `operands` name earlier results or inputs, or are numbers; `attributes` belong to the form.

    point: fn. permute, flip: dims. slice: dim, start, step. pad: low, value. cat: dim. iota: start, step.
    reduce: fn, dims (those that vanish), correction. matmul: of (b, m, k) and (b, k, n), or without b. conv: stride,
    padding, dilation, transposed, groups. pool: fn, kernel, stride, padding, dilation, include, divisor. scan: fn, dim.
    take: dim; the second operand holds indices and has the result's shape. index: at, the axis where the index
    tensors (all operands but the first, of one shape) stand. constant: values.
    """

    name: str
    form: Form
    operands: tuple[Operand, ...]
    shape: Shape
    kind: Kind
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Graph:
    """The problem: what it takes, operations in order, and which of them are its outputs."""

    given: tuple[Given, ...]
    ops: tuple[Op, ...]
    outputs: tuple[str, ...]

    @property
    def shapes(self) -> dict[str, Shape]:
        return {g.name: g.shape for g in self.given} | {op.name: op.shape for op in self.ops}

    @property
    def kinds(self) -> dict[str, Kind]:
        return {g.name: g.dtype for g in self.given} | {op.name: op.kind for op in self.ops}

    def freed(self) -> dict[str, tuple[str, ...]]:
        """By operation, the inputs and earlier results that nothing after it reads."""
        found: dict[str, tuple[str, ...]] = {}
        later = set(self.outputs)
        for op in reversed(self.ops):
            read = dict.fromkeys(one for one in op.operands if isinstance(one, str))
            found[op.name] = tuple(one for one in read if one not in later)
            later.update(read)
        return found

    def most_held(self) -> int:
        """The most elements that are held at one time where each is freed as soon as nothing reads it."""
        sizes = {name: math.prod(shape) for name, shape in self.shapes.items()}
        of = {one.name: one.name for one in self.given}  # whose memory it is
        using = dict.fromkeys(of, 1)
        freed, now = self.freed(), sum(sizes[one] for one in of)
        most = now
        for op in self.ops:
            of[op.name] = of[str(op.operands[0])] if op.form in _VIEWS else op.name
            using[of[op.name]] = using.get(of[op.name], 0) + 1
            now += sizes[op.name] if of[op.name] == op.name else 0
            most = max(most, now)
            for one in freed[op.name]:
                using[of[one]] -= 1
                now -= sizes[of[one]] if not using[of[one]] else 0
        return most
