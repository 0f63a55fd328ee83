"""What goes between the builder and a compiler in its child, as msgpack."""

from typing import Literal

from kerneltrial.records.plan import DType
from kerneltrial.records.record import Record


class NvrtcRequest(Record):
    """A CUDA C++ source, with the compiler's options in order."""

    source: bytes
    options: tuple[str, ...]


class NumbaParameter(Record):
    """What a Python kernel is called with: an array of `axes` axes, C-contiguous, or a number (0 axes)."""

    dtype: DType
    axes: int


class NumbaRequest(Record):
    """A Python source, the kernels to compile from it, and for which architecture."""

    source: bytes
    kernels: dict[str, tuple[NumbaParameter, ...]]
    arch: str


class AssemblyRequest(Record):
    """A PTX text, and for which architecture it is assembled."""

    ptx: bytes
    arch: str


class Compiled(Record, tag_field="state", tag="compiled"):
    """PTX (empty from an assembler), machine code (empty where there is none), the log, and what compiled it."""

    ptx: bytes
    cubin: bytes
    log: str
    compiler: str


class Refusal(Record, tag_field="state", tag="refused"):
    """The compiler's no: an error in the source, a limit, a kernel that is not there; `absent` is the host's fault."""

    why: Literal["error", "limit", "missing", "absent"]
    detail: str
    log: str


CompilerReply = Compiled | Refusal
