"""Device memory for one buffer of a call, with guard margins on both sides. Plain allocations only."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrial.devices.cuda.driver import call, release
from kerneltrial.devices.device import Poison, Values
from kerneltrial.inputs.calls import Buffer
from kerneltrial.inputs.dtypes import item_bytes

MARGIN_BYTES = 4096  # on each side; a multiple of every alignment that a contract can ask for in practice
# 0xFF is a NaN in every float type and -1 in integers. 0x7B is large and finite in every float type, float16 included
# (0x7B7B = 61,280; float32 1.3e36; float64 1.1e286).
POISON_BYTE: dict[Poison, int] = {"nan": 0xFF, "huge": 0x7B}


def settle() -> None:
    """Wait for the default stream.

    cuMemsetD8 returns before the memory is set, cuMemcpyHtoD from pageable memory once the source was read; and work on
    a non-blocking stream waits for neither (CUDA driver API, "API synchronization behavior").
    """
    call("cuStreamSynchronize", 0)


def buffer_bytes(buffer: Buffer) -> int:
    """Bytes of the whole buffer, without margins."""
    count = 1
    for extent in buffer.shape:
        count *= extent
    return count * item_bytes(buffer.dtype)


def given_bytes(buffer: Buffer, values: Values) -> NDArray[np.uint8]:
    """The bytes of an input or inout as they go to the device; raise ValueError where they do not fit the buffer."""
    if buffer.name not in values:
        raise ValueError(f"no value was given for {buffer.name}")
    flat = np.ascontiguousarray(values[buffer.name]).reshape(-1).view(np.uint8)
    if flat.nbytes != buffer_bytes(buffer):
        raise ValueError(f"{buffer.name}: {flat.nbytes} bytes were given, the call needs {buffer_bytes(buffer)}")
    return flat


class Guarded:
    """One buffer on the device between two margins.

    Parameters
    ----------
    buffer : Buffer
        What it is for.
    poison : int
        The byte in the margins.
    offset_bytes : int
        How far the address is moved up from where it would lie.
    """

    def __init__(self, buffer: Buffer, poison: int, offset_bytes: int = 0) -> None:
        self.buffer = buffer
        self.nbytes = buffer_bytes(buffer)
        self._poison = poison
        self._before = MARGIN_BYTES + offset_bytes
        self._total = self._before + self.nbytes + MARGIN_BYTES
        self._start = int(call("cuMemAlloc", self._total))
        self.address = self._start + self._before
        call("cuMemsetD8", self._start, poison, self._total)
        settle()

    def fill(self, byte: int, stream: Any) -> None:
        """Set every byte of the buffer (not the margins), in stream order."""
        if self.nbytes:
            call("cuMemsetD8Async", self.address, byte, self.nbytes, stream)

    def upload(self, flat: NDArray[np.uint8]) -> None:
        """Copy bytes in and wait."""
        if self.nbytes:
            call("cuMemcpyHtoD", self.address, flat.ctypes.data, self.nbytes)
            settle()

    def copy_from(self, other: "Guarded", stream: Any) -> None:
        """Copy another buffer of the same size, in stream order."""
        if self.nbytes:
            call("cuMemcpyDtoDAsync", self.address, other.address, self.nbytes, stream)

    def download(self) -> NDArray[np.uint8]:
        """The bytes of the buffer."""
        return _read(self.address, self.nbytes)

    def margins_intact(self) -> bool:
        """Whether every byte on both sides is as it was set."""
        after = self.address + self.nbytes
        before = _read(self._start, self._before)
        behind = _read(after, MARGIN_BYTES)
        return bool((before == self._poison).all() and (behind == self._poison).all())

    def free(self) -> None:
        release("cuMemFree", self._start)


@contextmanager
def freed(buffers: list[Guarded]) -> Iterator[list[Guarded]]:
    """Free whatever the body appended, however it ends."""
    try:
        yield buffers
    finally:
        for buffer in buffers:
            buffer.free()


def _read(address: int, count: int) -> NDArray[np.uint8]:
    out = np.empty(count, np.uint8)
    if count:
        call("cuMemcpyDtoH", out.ctypes.data, address, count)
    return out
