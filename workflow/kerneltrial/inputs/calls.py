"""A call: a launch plan with numbers in place of expressions, ready for a device. Made by `inputs.resolve`."""

from typing import Literal

import msgspec

from kerneltrial.records.plan import DType
from kerneltrial.records.record import Record


class Buffer(Record):
    """Device memory that a call touches; `shape` in elements, row-major, contiguous.

    `initial` is `given` for inputs and inouts (values come with the request), `poisoned` for outputs and for
    uninitialised scratch, `zeroed` for scratch that is zero before each call, `self_restoring` for scratch that is
    zero before the first call and that each call leaves as zero.
    """

    name: str
    role: Literal["input", "output", "inout", "scratch"]
    dtype: DType
    shape: tuple[int, ...]
    initial: Literal["given", "poisoned", "zeroed", "self_restoring"]


class Pointer(Record, tag_field="kind", tag="pointer"):
    """A kernel parameter: the address of a buffer."""

    buffer: str


class Scalar(Record, tag_field="kind", tag="scalar"):
    """A kernel parameter by value, `bytes` wide: an integer, or a float as its bit pattern in `bits`."""

    bytes: Literal[4, 8]
    bits: int


class ResolvedLaunch(Record):
    """One launch in numbers. `shared_bytes` is dynamic shared memory."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    cooperative: bool
    shared_bytes: int
    parameters: tuple[Pointer | Scalar, ...]


class Product(Record, tag_field="vendor", tag="cublas"):
    """C = A B as a vendor library computes it: names of the buffers, and which of them lie transposed.

    `tf32`: products may be rounded to TF32. `algorithm` is a place among the library's own suggestions; -1: find the
    fastest of them.
    """

    left: str
    right: str
    out: str
    left_transposed: bool = False
    right_transposed: bool = False
    tf32: bool = False
    algorithm: int = -1


class Call(Record):
    """Everything that a device needs to run one call of a plan, but for the values of inputs."""

    buffers: tuple[Buffer, ...]
    launches: tuple[ResolvedLaunch, ...]


def in_place(call: Call, output: str, source: str) -> Call:
    """The call with an input's memory for an output too: one buffer, named as the output, that is given as an inout."""

    def placed(parameter: Pointer | Scalar) -> Pointer | Scalar:
        is_source = isinstance(parameter, Pointer) and parameter.buffer == source
        return Pointer(buffer=output) if is_source else parameter

    return Call(
        buffers=tuple(
            msgspec.structs.replace(buffer, role="inout", initial="given") if buffer.name == output else buffer
            for buffer in call.buffers
            if buffer.name != source
        ),
        launches=tuple(
            msgspec.structs.replace(launch, parameters=tuple(map(placed, launch.parameters)))
            for launch in call.launches
        ),
    )
