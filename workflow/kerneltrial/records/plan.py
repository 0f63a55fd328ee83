"""The launch plan: how a candidate's kernels are launched for any shape of the contract."""

from typing import Annotated, Literal

from msgspec import Meta

from kerneltrial.records.record import Expression, Name, Record

Grid = tuple[Expression, Expression, Expression]
DType = Literal[
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
]


class Scratch(Record):
    """A buffer of the candidate's own; `elements` counts items of `dtype`.

    `self_restoring` means: zero before the first call, and left as zero by each call.
    """

    name: Name
    dtype: DType
    elements: Expression
    initial: Literal["uninitialised", "zeroed", "self_restoring"]


class Launch(Record):
    """One kernel launch. All sizes are integer expressions in the case's dimensions.

    Each of `args` is the name of a contract argument or of a scratch buffer, or `int32(EXPR)`, `int64(EXPR)`.
    `shared_bytes` is dynamic shared memory.
    """

    entry: Annotated[str, Meta(pattern=r"^[A-Za-z_$][A-Za-z0-9_$]{0,511}(?!\n)$")]
    grid: Grid
    block: Grid
    args: tuple[Annotated[str, Meta(min_length=1, max_length=220)], ...]
    cluster: Grid = ("1", "1", "1")
    cooperative: bool = False
    shared_bytes: Expression = "0"


class Variant(Record):
    """Launches that are used where `when`, an integer expression, is not zero."""

    launches: Annotated[tuple[Launch, ...], Meta(min_length=1, max_length=16)]
    when: Expression = "1"


class LaunchPlan(Record):
    """The first variant whose condition holds is taken; none is `no_launch_for_shape`."""

    variants: Annotated[tuple[Variant, ...], Meta(min_length=1, max_length=32)]
    scratch: Annotated[tuple[Scratch, ...], Meta(max_length=16)] = ()
