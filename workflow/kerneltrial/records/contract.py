"""The contract: what a kernel promises, in any language."""

from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from kerneltrial.records.plan import DType
from kerneltrial.records.record import Expression, Name, Positive, Record, Text

Special = Literal["nan", "inf", "-inf", "subnormal", "huge", "-0"]


class Array(Record, tag_field="kind", tag="array"):
    """A contiguous row-major array in device memory. `shape` has one expression in the dimensions an axis.

    `low` and `high` bound the values of generated inputs (both inclusive for integers). Integers without them may take
    every value of their type, so indices, counts and what is summed up need bounds. `below`, in place of `high`, is an
    expression in the dimensions that integers stay below: `cols` for indices of columns. `ascending`: integers never
    fall along the array's one axis, from its lower bound at the first place to its upper one at the last (row offsets
    of a CSR matrix).
    `specials` are values of float inputs for which a kernel must be right too, beside finite numbers of moderate size:
    some are put among the values of one draw. `huge` are finite ones near the end of the type: only where no sum or
    product that honest kernels form can overflow. `-0` is negative zero; where an output's zeros have signs
    (`signed_zero`), every float input that may be zero has it unasked.
    """

    name: Name
    role: Literal["input", "output", "inout"]
    dtype: DType
    shape: Annotated[tuple[Expression, ...], Meta(min_length=1, max_length=6)]
    low: Decimal | None = None
    high: Decimal | None = None
    below: Expression | None = None
    ascending: bool = False
    specials: tuple[Special, ...] = ()


class DimensionArgument(Record, tag_field="kind", tag="dimension"):
    """A dimension passed by value."""

    name: Name
    dtype: Literal["int32", "int64"] = "int32"


class ScalarArgument(Record, tag_field="kind", tag="scalar"):
    """A constant passed by value, the same in every call."""

    name: Name
    dtype: Literal["int32", "int64", "float32", "float64"]
    value: Decimal


Argument = Array | DimensionArgument | ScalarArgument


class Range(Record):
    """Values that a dimension may take in production, both ends included."""

    minimum: Positive
    maximum: Positive
    multiple_of: Positive = 1


class Tolerance(Record):
    """How far an output may lie from the oracle: |got - want| <= absolute + relative * |want|, every element.

    Where the oracle gives the sum of absolute terms, `scaled` adds scaled * eps(dtype) * sum|terms|.
    `baseline_factor`: the worst error may be at most this many times the baseline's own (and a few ULPs).
    `signed_zero`: a zero must have the sign that the oracle's zero has; else 0 and -0 are one.
    """

    absolute: Decimal = Decimal(0)
    relative: Decimal = Decimal(0)
    scaled: Decimal = Decimal(0)
    baseline_factor: Decimal = Decimal(8)
    signed_zero: bool = False


class Contract(Record):
    """What goes in, what comes out, and what counts as right.

    `in_place`: outputs by name, each with an input whose memory the caller may pass for it too; the kernel must be
    right both ways.
    """

    name: Name
    description: Text
    arguments: Annotated[tuple[Argument, ...], Meta(min_length=1, max_length=32)]
    dimensions: dict[Name, Range]
    tolerances: dict[Name, Tolerance]
    operations: Expression
    bytes: Expression
    deterministic: bool = True
    tf32: bool = False
    torch: str = ""
    alignment_bytes: Annotated[int, Meta(ge=1, le=4096)] = 256
    in_place: dict[Name, Name] = msgspec.field(default_factory=dict)
    include_folders: tuple[str, ...] = ()
    defines: dict[Name, str] = msgspec.field(default_factory=dict)
    options: tuple[str, ...] = ()

    @property
    def arrays(self) -> tuple[Array, ...]:
        return tuple(a for a in self.arguments if isinstance(a, Array))

    @property
    def outputs(self) -> tuple[Array, ...]:
        return tuple(a for a in self.arrays if a.role != "input")
