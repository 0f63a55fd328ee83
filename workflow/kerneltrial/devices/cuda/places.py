"""Where a buffer lies on the card: in a plain allocation, or in pages of its own between pages that are not mapped.

Virtual memory is that of the driver API ("Virtual Memory Management"): plain calls that need no privilege. An access to
a page that is not mapped, or a write to one that may only be read, is a fault of the kernel that made it.
"""

import ctypes
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from kerneltrial.devices.cuda import probe
from kerneltrial.devices.cuda.driver import CudaError, bindings, call, release

MARGIN_BYTES = 4096  # on each side of a plain one; a multiple of every alignment that a contract asks for in practice
_POOL_BYTES = 256 << 20  # that a pool holds at most
_POOLED_BYTES = 64 << 20  # of one allocation
_FENCED_BYTES = 64 << 20  # that stay mapped between calls at most
_PLAIN_ALIGNMENT = 256  # of what ends at a fence, where no other is asked for


class Place(Protocol):
    """Mapped memory from `start`, `total` bytes long, whose payload begins `before` bytes in."""

    start: int
    before: int
    total: int

    def protect(self) -> None:
        """From now on kernels may only read it, where that can be had."""

    def free(self) -> None: ...


class Pool:
    """Allocations that were given back and are handed out again: mapping memory anew takes longer than a small call.

    Whoever takes one finds what was left there, and fills it before anything looks.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[int]] = {}
        self._held = 0

    def take(self, nbytes: int) -> int:
        """The address of at least so many bytes."""
        size = _rounded(nbytes)
        if self._free.get(size):
            self._held -= size
            return self._free[size].pop()
        try:
            return int(call("cuMemAlloc", size))
        except CudaError as error:
            if error.code != "CUDA_ERROR_OUT_OF_MEMORY" or not self._held:
                raise
            self.empty()
            return int(call("cuMemAlloc", size))

    def give(self, start: int, nbytes: int) -> None:
        """Give back what `take` gave for so many bytes."""
        size = _rounded(nbytes)
        if size > _POOLED_BYTES or self._held + size > _POOL_BYTES:
            release("cuMemFree", start)
            return
        self._free.setdefault(size, []).append(start)
        self._held += size

    def empty(self) -> None:
        """Free all that is not in use."""
        for starts in self._free.values():
            for start in starts:
                release("cuMemFree", start)
        self._free, self._held = {}, 0


def _rounded(nbytes: int) -> int:
    """The next power of two: few sizes, so that most are there already. What is too large to be kept stays as it is."""
    return nbytes if nbytes > _POOLED_BYTES else 1 << max(16, (nbytes - 1).bit_length())


class Staging:
    """Two pieces of host memory that the card reads and writes directly: what goes there, and what came back."""

    nbytes = 4 << 20

    def __init__(self) -> None:
        self._addresses = [int(call("cuMemHostAlloc", self.nbytes, 0)) for _ in range(2)]
        self.image, self.back = (
            np.ctypeslib.as_array((ctypes.c_uint8 * self.nbytes).from_address(address)) for address in self._addresses
        )

    def free(self) -> None:
        for address in self._addresses:
            release("cuMemFreeHost", address)


class Plain:
    """An allocation with margins on both sides, moved up by `offset_bytes`; from a pool where one is given.

    Without that the payload begins at a multiple of a margin's size: a driver promises 256 bytes, a contract may more.
    """

    def __init__(self, nbytes: int, offset_bytes: int = 0, pool: Pool | None = None) -> None:
        self.before = MARGIN_BYTES + offset_bytes
        self.total = self.before + nbytes + MARGIN_BYTES
        self._pool = pool
        taken = self.total + MARGIN_BYTES
        self._taken = int(call("cuMemAlloc", taken)) if pool is None else pool.take(taken)
        self.start = -(-self._taken // MARGIN_BYTES) * MARGIN_BYTES

    def protect(self) -> None:
        """A plain allocation can always be written: inputs are compared after the call."""

    def free(self) -> None:
        if self._pool is None:
            release("cuMemFree", self._taken)
        else:
            self._pool.give(self._taken, self.total + MARGIN_BYTES)


class Fenced:
    """Pages of its own: the payload begins at the first byte (`start`), or ends at the last (`end`).

    `offset_bytes` moves a payload at the start up; one at the end lies at a multiple of it, so up to one alignment
    less a byte is left behind it. All that is mapped around the payload is margin.
    """

    def __init__(self, fences: "Fences", nbytes: int, offset_bytes: int, at: Literal["start", "end"]) -> None:
        page = fences.page
        alignment = offset_bytes or _PLAIN_ALIGNMENT
        self.total = max(1, -(-(nbytes + alignment) // page)) * page
        self._fences, self._protected = fences, False
        self._mapped = fences.take(self.total)
        self.start = self._mapped.start
        last = self.start + self.total - nbytes
        self.before = offset_bytes if at == "start" else last // alignment * alignment - self.start

    def protect(self) -> None:
        self._fences.allow(self._mapped, "READ")
        self._protected = True

    def free(self) -> None:
        try:
            if self._protected:
                self._fences.allow(self._mapped, "READWRITE")
        except CudaError as error:
            if not error.is_fault:
                raise
        self._fences.give(self._mapped)


@dataclass(frozen=True)
class Mapped:
    """Pages that are mapped from `start`, and a page on either side that never is."""

    reserved: int
    start: int
    total: int
    made: Any


@dataclass
class Fences:
    """What this card can do; `absent` says why there are none ("" where there are).

    Pages that were given back stay mapped and are handed out again, as mapping them takes longer than a small call.
    Whoever takes some finds what was left there, and fills it before anything looks.
    """

    page: int
    kind: Any
    absent: str
    _kept: dict[int, list[Mapped]] = field(default_factory=dict)
    _held: int = 0

    def take(self, total: int) -> Mapped:
        """Pages that kernels may read and write; `total` is a multiple of `page`."""
        if self._kept.get(total):
            self._held -= total
            return self._kept[total].pop()
        reserved = int(call("cuMemAddressReserve", total + 2 * self.page, 0, 0, 0))
        start, made, mapped = reserved + self.page, None, False
        try:
            made = call("cuMemCreate", total, self.kind, 0)
            call("cuMemMap", start, total, 0, made, 0)
            mapped = True
            found = Mapped(reserved=reserved, start=start, total=total, made=made)
            self.allow(found, "READWRITE")
        except CudaError:
            if mapped:
                release("cuMemUnmap", start, total)
            if made is not None:
                release("cuMemRelease", made)
            release("cuMemAddressFree", reserved, total + 2 * self.page)
            raise
        return found

    def give(self, pages: Mapped) -> None:
        """Give back what `take` gave; kernels may read and write it again."""
        if self._held + pages.total > _FENCED_BYTES:
            self._unmap(pages)
            return
        self._kept.setdefault(pages.total, []).append(pages)
        self._held += pages.total

    def empty(self) -> None:
        """Unmap all that is not in use."""
        for kept in self._kept.values():
            for pages in kept:
                self._unmap(pages)
        self._kept, self._held = {}, 0

    def _unmap(self, pages: Mapped) -> None:
        release("cuMemUnmap", pages.start, pages.total)
        release("cuMemRelease", pages.made)
        release("cuMemAddressFree", pages.reserved, pages.total + 2 * self.page)

    def allow(self, pages: Mapped, what: Literal["READ", "READWRITE"]) -> None:
        """Say what the card may do with mapped pages."""
        driver = bindings()
        access = driver.CUmemAccessDesc()
        access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = 0
        access.flags = getattr(driver.CUmemAccess_flags, f"CU_MEM_ACCESS_FLAGS_PROT_{what}")
        call("cuMemSetAccess", pages.start, pages.total, [access], 1)


def fences(handle: Any) -> Fences:
    """Look what the card can do, by mapping one page and freeing it again."""
    driver = bindings()
    kind = driver.CUmemAllocationProp()
    kind.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    kind.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    kind.location.id = 0
    minimum = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    try:
        if not probe.attribute("VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED", handle):
            return Fences(page=0, kind=None, absent="this card has no virtual memory management")
        found = Fences(page=int(call("cuMemGetAllocationGranularity", kind, minimum)), kind=kind, absent="")
        tried = Fenced(found, 1, 0, "start")
        tried.protect()
        tried.free()
        found.empty()
    except CudaError as error:
        if error.is_fault:
            raise
        return Fences(page=0, kind=None, absent=str(error))
    return found
