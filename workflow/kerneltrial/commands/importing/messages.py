"""What the confined child tells of a PyTorch problem: tensors and a graph of aten operations, as plain values.

The child runs code that nobody has read, so that nothing of this is believed: `lowering` takes operations that it
knows, with the shapes that it works out, and refuses the rest.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from kerneltrial.records.record import Record

# x0 is an input, w_... a weight, c3 a constant, n4 an operation: no other word can be a variable of what is written
Name = Annotated[str, Meta(pattern=r"^([xcn][0-9]{1,6}|w_[a-z0-9_]{1,50})(?!\n)$")]
Kind = Literal["float32", "int32", "int64", "bool"]
Shape = Annotated[tuple[Annotated[int, Meta(ge=0, lt=2**31)], ...], Meta(max_length=8)]


class Given(Record):
    """A tensor that the function takes: an input, a parameter or a buffer; `low` and `high` are the values seen."""

    name: Name
    role: Literal["input", "parameter", "buffer"]
    dtype: Kind
    shape: Shape
    low: float
    high: float


class Node(Record):
    """One operation. An argument `{"$": NAME}` names an earlier node or a tensor; the others are plain values."""

    name: Name
    op: Annotated[str, Meta(max_length=100)]
    args: dict[str, Any]
    shape: Shape
    dtype: Kind


class Constant(Record):
    """A small tensor that the code holds."""

    name: Name
    dtype: Kind
    shape: Shape
    values: tuple[float, ...]


class Problem(Record):
    """What the child starts with: the problem's source."""

    source: str


class Traced(Record, tag_field="state", tag="traced"):
    """The function as a graph. `evaluated`: in evaluation mode, since it is random or changes itself when it trains."""

    given: tuple[Given, ...]
    constants: tuple[Constant, ...]
    nodes: Annotated[tuple[Node, ...], Meta(max_length=2000)]
    outputs: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=8)]
    evaluated: bool
    torch: Annotated[str, Meta(pattern=r"^[0-9A-Za-z.+_-]{1,40}(?!\n)$")]


class Cannot(Record, tag_field="state", tag="cannot"):
    """Why there is no graph."""

    why: str


class Evaluate(Record):
    """Run the model on these values, by name: bytes in row-major order of the given dtype and shape."""

    values: dict[str, bytes]
    double: bool


class Evaluated(Record, tag_field="state", tag="evaluated"):
    """Outputs in order, as bytes of float64 or int64."""

    outputs: tuple[bytes, ...]


Answer = Traced | Evaluated | Cannot
