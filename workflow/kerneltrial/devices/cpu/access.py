"""Checked access to memory: from an address of the kernel to a pointer of the host, or to a fault.

Every byte of the arena has flags (layout.READABLE and so on). An access of n bytes loads the n flags behind it and
compares them with what it needs, so bounds, read-only inputs and memory never written are one comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu import races, races_global
from kerneltrial.devices.cpu.refusals import unsupported_instruction
from kerneltrial.devices.cpu.syntax import Instruction

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.generator import Generator


class Access:
    """One access: `kind` is read, write or update (an atomic), `size` in bytes.

    `stored` is what a plain store writes, as an integer of its size: to store what is there already is no race with
    whoever stored it (workflow/adr/0016).
    """

    stored = ""

    def __init__(self, generator: Generator, instruction: Instruction, space: str, kind: str, size: int) -> None:
        self.g = generator
        self.b = generator.body
        self.instruction = instruction
        self.space = space
        self.kind = kind
        self.size = size
        self.strong = _is_strong(instruction.opcode)
        self.site = generator.site(instruction, space, kind, size)

    def pointer(self, address: str) -> str:
        """The checked host pointer of `address` in the access's space."""
        match self.space:
            case "global":
                return self._global(address)
            case "const":
                return self._global(address)
            case "shared":
                return self._shared(address, address)
            case "local":
                return self._local(address, address)
            case "generic":
                return self._generic(address)[0]
        raise unsupported_instruction(f"{self.instruction.opcode}", self.instruction.line)

    def pointer_and_space(self, address: str) -> tuple[str, str]:
        """The pointer, and an i1 that says whether it lies in shared memory."""
        if self.space == "generic":
            return self._generic(address)
        return self.pointer(address), "true" if self.space == "shared" else "false"

    # -- global

    def _global(self, address: str) -> str:
        b, g, n = self.b, self.g, self.size
        offset = b.op(f"sub i64 {address}, {at.GLOBAL_BASE}")
        g.require(self._within(offset, g.block_field("arena_bytes")), self.site, address)
        flags = b.op(f"getelementptr i8, ptr {self._pointer_field('flags')}, i64 {offset}")
        held = b.op(f"load i{8 * n}, ptr {flags}, align {n}")
        need = self._needed() * _ones(n)
        have = b.op(f"and i{8 * n} {held}, {need}")
        g.require(b.op(f"icmp eq i{8 * n} {have}, {need}"), self.site, address)
        if g.level == "all" and self.kind != "read":
            b.do(f"store i{8 * n} {b.op(f'or i{8 * n} {held}, {at.WRITTEN * _ones(n)}')}, ptr {flags}, align {n}")
        self._between_blocks(offset, address, held)
        g.record(self, address, False)
        return b.op(f"getelementptr i8, ptr {self._pointer_field('arena')}, i64 {offset}")

    def _between_blocks(self, offset: str, address: str, held: str) -> None:
        """Under all checks: look for races with other blocks, in memory that the launch may write."""
        b, g = self.b, self.g
        if g.level != "all" or self.space == "const":
            return
        kind = {"read": races_global.READ, "write": races_global.WRITE, "update": races_global.ATOMIC}[self.kind]
        if self.strong and self.kind != "update":
            kind |= races_global.STRONG
        writable = b.op(f"icmp ne i{8 * self.size} {b.op(f'and i{8 * self.size} {held}, {at.WRITABLE}')}, 0")
        checked = b.field("%blk", at.BLOCK["global_shadow"], "ptr", "!invariant.load !0")
        looked_at = b.op(f"and i1 {writable}, {b.op(f'icmp ne ptr {checked}, null')}")
        with b.when(looked_at):
            kinds = self._same_or(kind, races_global.SAME, "arena", offset)
            clean = b.call(
                "i1", "kt_global", ("ptr", "%blk"), ("ptr", "%ctx"), ("i64", offset), ("i64", address),
                ("i64", self.size), ("i64", kinds), ("i64", self.site),
            )  # fmt: skip
            on = b.label()
            b.branch(clean, on, "fail", "!prof !1")
            b.place(on)

    def _needed(self) -> int:
        if self.space == "const":
            return at.CONSTANT
        written = at.WRITTEN if self.g.level == "all" else 0
        return {"read": at.READABLE | written, "write": at.WRITABLE, "update": at.WRITABLE | written}[self.kind]

    def _pointer_field(self, name: str) -> str:
        return self.b.field("%blk", at.BLOCK[name], "ptr", "!invariant.load !0")

    def _within(self, offset: str, limit: str | int) -> str:
        """Whether `offset` is a multiple of the size and the access ends at or before `limit`.

        Rotated right, an offset with low bits set is larger than every limit, so one comparison says both.
        """
        b, shift = self.b, self.size.bit_length() - 1
        units = limit >> shift if isinstance(limit, int) else b.op(f"lshr i64 {limit}, {shift}")
        turned = b.call("i64", "llvm.fshr.i64", ("i64", offset), ("i64", offset), ("i64", shift))
        return b.op(f"icmp ult i64 {turned}, {units}")

    # -- shared and local

    def _shared(self, offset: str, address: str) -> str:
        b, g = self.b, self.g
        fixed = not g.layout.open_shared
        limit = g.layout.shared_bytes if fixed else g.block_field("shared_bytes")
        g.require(self._within(offset, limit), self.site, address)
        if g.level == "all":
            kind = {"read": races.READ, "write": races.WRITE, "update": races.ATOMIC}[self.kind]
            kinds = self._same_or(kind, races.SAME, "shared", offset)
            clean = b.call(
                "i1", "kt_shared", ("ptr", "%blk"), ("ptr", "%ctx"), ("i64", offset), ("i64", self.size),
                ("i64", kinds), ("i64", self.site),
            )  # fmt: skip
            on = b.label()
            b.branch(clean, on, "fail", "!prof !1")
            b.place(on)
        g.record(self, offset, True)
        return b.op(f"getelementptr i8, ptr {self._pointer_field('shared')}, i64 {offset}")

    def _same_or(self, kind: int, same: int, memory: str, offset: str) -> str:
        """`kind`, or `same` where a plain store changes nothing of what is in `memory` at `offset`."""
        if self.kind != "write" or self.strong or not self.stored:
            return str(kind)
        b, bits = self.b, 8 * self.size
        pointer = b.op(f"getelementptr i8, ptr {self._pointer_field(memory)}, i64 {offset}")
        held = b.op(f"load i{bits}, ptr {pointer}, align {self.size}")
        return b.op(f"select i1 {b.op(f'icmp eq i{bits} {held}, {self.stored}')}, i64 {same}, i64 {kind}")

    def _local(self, offset: str, address: str) -> str:
        b, g = self.b, self.g
        g.require(self._within(offset, g.layout.local_bytes), self.site, address)
        start = b.op(f"getelementptr i8, ptr %ctx, i64 {g.layout.local_offset}")
        return b.op(f"getelementptr i8, ptr {start}, i64 {offset}")

    # -- generic

    def _generic(self, address: str) -> tuple[str, str]:
        """By window: shared, local, else global."""
        b = self.b
        shared, other, local, outside, end = (b.label() for _ in range(5))
        in_shared = b.op(f"sub i64 {address}, {at.SHARED_BASE}")
        b.branch(b.op(f"icmp ult i64 {in_shared}, {at.WINDOW_BYTES}"), shared, other)
        found: list[tuple[str, str, str]] = []

        def arrive(pointer: str, flag: str) -> None:
            here = b.label()
            b.jump(here)
            b.place(here)
            b.jump(end)
            found.append((pointer, flag, here))

        b.place(shared)
        arrive(self._shared(in_shared, address), "true")
        b.place(other)
        in_local = b.op(f"sub i64 {address}, {at.LOCAL_BASE}")
        b.branch(b.op(f"icmp ult i64 {in_local}, {at.WINDOW_BYTES}"), local, outside)
        b.place(local)
        arrive(self._local(in_local, address), "false")
        b.place(outside)
        arrive(self._global(address), "false")
        b.place(end)
        pointer = b.op("phi ptr " + ", ".join(f"[ {p}, %{label} ]" for p, _, label in found))
        flag = b.op("phi i1 " + ", ".join(f"[ {s}, %{label} ]" for _, s, label in found))
        return pointer, flag


def _is_strong(opcode: str) -> bool:
    """Whether an access takes part in the order between threads: atomics, volatile and ordered loads and stores."""
    words = opcode.split(".")
    return words[0] in ("atom", "red") or bool({"volatile", "relaxed", "acquire", "release"} & set(words))


def _ones(n: int) -> int:
    """n bytes of value 1, as an integer."""
    return int.from_bytes(b"\1" * n, "little")
