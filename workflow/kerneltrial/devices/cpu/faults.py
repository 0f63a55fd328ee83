"""What a fault of generated code means: a finding with the reason, the place in memory, source line, thread, block."""

from dataclasses import dataclass

import numpy as np

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu import races_global
from kerneltrial.devices.cpu.arena import Arena
from kerneltrial.devices.cpu.asynchronous import ENTRIES
from kerneltrial.devices.cpu.kernel import Kernel
from kerneltrial.devices.cpu.races import other_in_words
from kerneltrial.devices.cpu.sites import Site
from kerneltrial.records.reason import Finding, Reason

_NEVER_REACHED = "a barrier that this thread never reaches: it ended while others of its block wait there"


@dataclass(frozen=True)
class Fault:
    """The fields that generated code left. `thread` is the linear index within the block."""

    code: int
    site: Site
    address: int
    thread: int
    other: int
    entry: str
    grid: tuple[int, int, int]
    block_size: tuple[int, int, int]
    block: tuple[int, int, int]

    def where(self) -> str:
        x, y, _ = self.block_size
        thread = (self.thread % x, self.thread // x % y, self.thread // (x * y))
        line = f"source line {self.site.line}, " if self.site.line else ""
        return f"{line}thread {_triple(thread)}, block {_triple(self.block)}"


def _triple(values: tuple[int, int, int]) -> str:
    return f"({values[0]},{values[1]},{values[2]})"


def explain(fault: Fault, kernel: Kernel, arena: Arena, shared_bytes: int) -> Finding:
    """The finding for a fault."""
    reason, what = _meaning(fault, kernel, arena, shared_bytes)
    return Finding(reason=reason, detail=f"{what}; {fault.where()}")


def _meaning(fault: Fault, kernel: Kernel, arena: Arena, shared_bytes: int) -> tuple[Reason, str]:
    site = fault.site
    match fault.code:
        case at.DEADLOCK:
            return Reason.DEADLOCK, "threads wait for each other at different places, and none can go on"
        case at.EXITED:
            return Reason.BARRIER_DIVERGENCE, _NEVER_REACHED
        case at.EXHAUSTED:
            return Reason.ENDLESS_LOOP, "the budget of instructions is used up"
        case at.RACE:
            with_whom = other_in_words(fault.other)
            what = f"shared {_word(site)} of {site.size} bytes at offset {fault.address} races with {with_whom}"
            return Reason.SHARED_RACE, what
        case at.GLOBAL_RACE:
            return Reason.GLOBAL_RACE, _in_global(fault, arena)
        case at.NEVER_WRITTEN:
            what = f"shared read of {site.size} bytes at offset {fault.address}, which the block never wrote"
            return Reason.UNINITIALISED_READ, what
    match site.kind:
        case "budget":
            return Reason.ENDLESS_LOOP, "the budget of instructions is used up in a loop"
        case "trap":
            return Reason.TRAP, "the kernel executed a trap (or an assertion failed)"
        case "copies":
            return Reason.UNSUPPORTED_FEATURE, f"not checked on cpu: more than {ENTRIES} copies of a thread under way"
        case "length":
            return Reason.TRAP, f"{site.opcode} of more bytes than its size"
        case "ended":
            what = f"{site.opcode} reads from lane {fault.address}, which its mask names and which has ended"
            return Reason.BARRIER_DIVERGENCE, what
        case "mask":
            what = f"{site.opcode} with a mask that does not name the lane that executes it, or an unknown barrier"
            return Reason.BARRIER_DIVERGENCE, what
    return _access(fault, kernel, arena, shared_bytes)


def _in_global(fault: Fault, arena: Arena) -> str:
    site, number = fault.site, (fault.other >> 32) - 1
    x, y, _ = fault.grid
    other = (number % x, number // x % y, number // (x * y))
    place = _place(arena, (fault.address - at.GLOBAL_BASE) % (1 << 64))
    whom = races_global.other_in_words(fault.other)
    whom = f"{whom} of its block" if other == fault.block else f"block {_triple(other)}, {whom}"
    return f"global {_word(site)} of {site.size} bytes {place} races with {whom}: nothing orders them"


def got_older(read: Site, wrote: Site, address: int, arena: Arena) -> str:
    """A strong read that got an older value, and the write of another block whose value that was not."""
    place = _place(arena, (address - at.GLOBAL_BASE) % (1 << 64))
    return (
        f"global {_word(read)} of {read.size} bytes {place}, source line {read.line}, got what was there before the "
        f"{_word(wrote)} of another block in source line {wrote.line}: nothing orders the two (a fence is missing?)"
    )


def _word(site: Site) -> str:
    return {"read": "read", "write": "write", "update": "atomic"}[site.kind]


def _access(fault: Fault, kernel: Kernel, arena: Arena, shared_bytes: int) -> tuple[Reason, str]:
    site, address = fault.site, fault.address % (1 << 64)
    space, offset, limit = site.space, address, arena.memory.size
    if space == "generic":
        windows = (("shared", at.SHARED_BASE), ("local", at.LOCAL_BASE), ("global", 0))
        space, base = next((s, b) for s, b in windows if s == "global" or 0 <= address - b < at.WINDOW_BYTES)
        offset = address - base
    start = f"{space} {_word(site)} of {site.size} bytes"
    if space in ("shared", "local"):
        limit = shared_bytes if space == "shared" else kernel.layout.local_bytes
        if offset + site.size <= limit:
            return Reason.MISALIGNED, f"{start} at offset {offset}, which is no multiple of {site.size}"
        return Reason.OUT_OF_BOUNDS, f"{start} at offset {_signed(offset)} of {limit} bytes"
    offset = (address - at.GLOBAL_BASE) % (1 << 64)
    place = _place(arena, offset)
    if offset < limit and offset % site.size:
        return Reason.MISALIGNED, f"{start} {place}, at an address that is no multiple of {site.size}"
    if offset < limit:
        flags = arena.flags[offset : offset + site.size]
        if np.all(flags & at.READABLE) and space != "const":
            if site.kind != "read" and not np.all(flags & at.WRITABLE):
                return Reason.READ_ONLY_WRITTEN, f"{start} {place}, which is read-only"
            return Reason.UNINITIALISED_READ, f"{start} {place}, which was never written"
    return Reason.OUT_OF_BOUNDS, f"{start} {place}"


def _signed(offset: int) -> int:
    return offset - (1 << 64) if offset >> 63 else offset


def _place(arena: Arena, offset: int) -> str:
    """Where an address lies, told by the nearest buffer."""
    signed = _signed(offset)
    best, distance = "", 1 << 70
    for name, placed in arena.placed.items():
        at_byte = signed - placed.start
        away = max(0, -at_byte, at_byte - placed.size + 1)
        if away < distance:
            best, distance = f"at byte {at_byte} of buffer {name} ({placed.size} bytes)", away
    return best if distance <= 1 << 20 else "far from every buffer"
