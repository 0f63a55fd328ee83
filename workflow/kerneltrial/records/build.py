"""A build: what the compiler made of each candidate."""

from typing import Annotated, Literal

from msgspec import Meta

from kerneltrial.records.reason import Reason, Skipped
from kerneltrial.records.record import Count, Digest, Record, Text

Abi = Literal["pointer", "numba_array"]


class Entry(Record):
    """One kernel of a binary. Registers and spills are per thread, `shared_bytes` is static shared memory.

    `parameters` are sizes in bytes, in order.
    """

    name: str
    parameters: tuple[Count, ...]
    registers: Count
    shared_bytes: Count
    spilled_bytes: Count


class NoCubin(Record, tag_field="kind", tag="none"):
    """No machine code was made (on `cpu`, for a language whose assembler needs none)."""


class Cubin(Record, tag_field="kind", tag="cubin"):
    """Machine code for `arch`."""

    digest: Digest
    arch: str


class Built(Record, tag_field="state", tag="built"):
    """`abi` says how arrays are passed: a pointer each, or flattened as numba does.

    `ptx` is empty where a baseline was given as machine code; the spills of its entries are their whole local memory.
    """

    candidate: Digest
    abi: Abi
    ptx: Digest
    cubin: Cubin | NoCubin
    entries: tuple[Entry, ...]
    compiler: str
    options: tuple[str, ...]
    log: Digest
    same_ptx_as: tuple[Digest, ...]


class NotBuilt(Record, tag_field="state", tag="not_built"):
    """Why there is no binary; `log` is the compiler's whole output."""

    candidate: Digest
    reason: Reason
    detail: Text
    log: Digest


class Build(Record):
    """One entry a candidate, in the order of the proposal."""

    candidates: Annotated[tuple[Built | NotBuilt, ...], Meta(max_length=64)]


BuildOutcome = Built | NotBuilt | Skipped
