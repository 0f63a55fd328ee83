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
