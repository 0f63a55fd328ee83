"""Device memory for one buffer of a call, with guard margins on both sides."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrial.devices.cuda.driver import call
from kerneltrial.devices.cuda.places import Place, Plain
from kerneltrial.devices.device import Conditions, Values
from kerneltrial.devices.poison import MARGIN_DTYPE, REPEAT_BYTES, poison_into
from kerneltrial.inputs.calls import Buffer
from kerneltrial.inputs.dtypes import item_bytes

_NEAR_BYTES = 64 << 10  # so much of a margin is looked at: a page between fences is 2 MiB, and reading it back is slow


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
    place : Place
        Where it lies, which is then its own; a plain allocation where none is given.
    """

    def __init__(self, buffer: Buffer, poison: int, offset_bytes: int = 0, place: Place | None = None) -> None:
        self.buffer = buffer
        self.nbytes = buffer_bytes(buffer)
        self._place = place = place or Plain(self.nbytes, offset_bytes)
        self.address = place.start + place.before
        call("cuMemsetD8", place.start, poison, place.total)
        settle()
        before, after = place.before, place.total - place.before - self.nbytes
        near = (min(before, _NEAR_BYTES), min(after, _NEAR_BYTES))
        self._margins = tuple(np.full(size, poison, np.uint8) for size in near)
        self._margin_starts = (self.address - near[0], self.address + self.nbytes)

    def poison(self, conditions: Conditions) -> None:
        """Fill buffer and margins with a poison that is not one byte, and wait."""
        block = np.empty(min(self.nbytes, REPEAT_BYTES), np.uint8)
        poison_into(block, conditions, self.buffer.name, self.buffer.dtype)
        for at in range(0, self.nbytes, REPEAT_BYTES):
            call("cuMemcpyHtoD", self.address + at, block.ctypes.data, min(REPEAT_BYTES, self.nbytes - at))
        for margin, start in zip(self._margins, self._margin_starts, strict=True):
            poison_into(margin, conditions, f"{self.buffer.name} {start < self.address}", MARGIN_DTYPE)
            if margin.nbytes:
                call("cuMemcpyHtoD", start, margin.ctypes.data, margin.nbytes)
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
        """Whether the bytes on both sides are as they were set: all of a plain place, 64 KiB each of a fenced one."""
        return all(
            np.array_equal(_read(start, margin.nbytes), margin)
            for start, margin in zip(self._margin_starts, self._margins, strict=True)
        )

    def protect(self) -> None:
        """From now on kernels may only read it, where its place can do that."""
        self._place.protect()

    def free(self) -> None:
        self._place.free()


def _read(address: int, count: int) -> NDArray[np.uint8]:
    out = np.empty(count, np.uint8)
    if count:
        call("cuMemcpyDtoH", out.ctypes.data, address, count)
    return out
