"""Checked access to memory: from an address of the kernel to a pointer of the host, or to a fault.

Every byte of the arena has flags (layout.READABLE and so on). An access of n bytes loads the n flags behind it and
compares them with what it needs, so bounds, read-only inputs and memory never written are one comparison. Where only
bounds are checked, that is done in place; all else is done by `reach`, out of line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerneltrial.devices.cpu import granules, reach
from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.ir import LIKELY
from kerneltrial.devices.cpu.refusals import unsupported_instruction
from kerneltrial.devices.cpu.syntax import Instruction, Memory

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.generator import Generator
    from kerneltrial.devices.cpu.grouping import Group


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
            case "local":
                return self._local(address, address)
            case "generic":
                return self._reached("generic", address)
            case "shared" if self.g.level == "bounds":
                return self._shared(address)
            case "shared":
                return self._reached("shared", address)
            case "global" | "const":
                offset = self.b.op(f"sub i64 {address}, {at.GLOBAL_BASE}")
                if self.g.level == "bounds":
                    return self._global(offset, address)
                if self.g.level == "all" and self.kind == "read" and not self.strong:
                    return self._read(offset)
                return self._reached("global", offset)
        raise unsupported_instruction(f"{self.instruction.opcode}", self.instruction.line)

    def pointer_and_space(self, address: str) -> tuple[str, str]:
        """The pointer, and an i1 that says whether it lies in shared memory."""
        pointer = self.pointer(address)
        if self.space != "generic":
            return pointer, "true" if self.space == "shared" else "false"
        window = self.b.op(f"sub i64 {address}, {at.SHARED_BASE}")
        return pointer, self.b.op(f"icmp ult i64 {window}, {at.WINDOW_BYTES}")

    def _reached(self, space: str, offset: str) -> str:
        """By the function for this space and level, out of line."""
        b = self.b
        kind = {"read": granules.READ, "write": granules.WRITE, "update": granules.ATOMIC}[self.kind]
        if self.strong and self.kind != "update":
            kind |= granules.STRONG
        if self.strong and "cta" in self.instruction.opcode.split("."):
            kind |= granules.NEAR
        stored = self._halves() if self.stored and self.kind == "write" and not self.strong else ()
        pointer = b.call(
            "ptr", reach.symbol(space, "store" if stored else self.g.level), ("ptr", "%blk"), ("ptr", "%ctx"),
            ("i64", offset), ("i64", reach.what(self.size, kind)), ("i64", reach.needed(self.size, self._needed())),
            ("i64", self.site), *(("i64", half) for half in stored), convention=reach.CONVENTION,
        )  # fmt: skip
        on = b.label()
        b.branch(b.op(f"icmp ne ptr {pointer}, null"), on, "fail", LIKELY)
        b.place(on)
        return pointer

    def _halves(self) -> tuple[str, str]:
        """What is stored, as two words of 64 bits."""
        b, bits = self.b, 8 * self.size
        if bits < 64:
            return b.op(f"zext i{bits} {self.stored} to i64"), "0"
        if bits == 64:
            return self.stored, "0"
        low = b.op(f"trunc i128 {self.stored} to i64")
        return low, b.op(f"trunc i128 {b.op(f'lshr i128 {self.stored}, 64')} to i64")

    def _held(self, offset: str) -> str:
        """The flags of the access's bytes; those of an offset outside are looked up at 0, where nothing may be done."""
        b, g, n = self.b, self.g, self.size
        inside = self._below(offset, g.invariant(f"arena_units{n}", "i64"))
        safe = b.op(f"select i1 {inside}, i64 {offset}, i64 0")
        flags = b.op(f"getelementptr i8, ptr {g.invariant('flags', 'ptr')}, i64 {safe}")
        return b.op(f"load i{8 * n}, ptr {flags}, align {n}")

    def _has(self, held: str, need: int, of: int) -> str:
        """Whether of the flags `of`, each byte has those of `need` and no others."""
        b, n = self.b, self.size
        have = b.op(f"and i{8 * n} {held}, {of * _ones(n)}")
        return b.op(f"icmp eq i{8 * n} {have}, {need * _ones(n)}")

    def _global(self, offset: str, address: str) -> str:
        """One branch for both checks."""
        b, g, need = self.b, self.g, self._needed()
        held = self._held(offset)
        if self.kind == "read" and self.space == "global":
            have = b.op(f"and i{8 * self.size} {held}, {self._read_mask()}")
            g.require(b.op(f"icmp eq i{8 * self.size} {have}, {need * _ones(self.size)}"), self.site, address)
        else:
            g.require(self._has(held, need, need), self.site, address)
        if self.kind != "read":
            self._mark(offset)
        return b.op(f"getelementptr i8, ptr {g.invariant('arena', 'ptr')}, i64 {offset}")

    def _read_mask(self) -> str:
        """The flags that a read looks at, for each of its bytes: the launch says which (see `parallel`)."""
        b, mask = self.b, self.g.invariant("read_mask", "i64")
        if self.size < 8:
            return b.op(f"trunc i64 {mask} to i{8 * self.size}")
        if self.size == 8:
            return mask
        wide = b.op(f"zext i64 {mask} to i128")
        return b.op(f"or i128 {wide}, {b.op(f'shl i128 {wide}, 64')}")

    def _mark(self, offset: str) -> None:
        """Where blocks run on several cores, each notes what it writes."""
        b, marks = self.b, self.g.invariant("marks", "ptr")
        with b.when(b.op(f"icmp ne ptr {marks}, null")):
            place = b.op(f"getelementptr i8, ptr {marks}, i64 {offset}")
            b.do(f"store i{8 * self.size} {_ones(self.size)}, ptr {place}, align 1")

    def _read(self, offset: str) -> str:
        """Under all checks: what the launch cannot write, as inputs are, needs no look at other blocks."""
        b = self.b
        need = self._needed()
        plain, other, on = b.label(), b.label(), b.label()
        b.branch(self._has(self._held(offset), need, need | at.WRITABLE), plain, other)
        b.place(other)
        if "nc" in self.instruction.opcode.split("."):
            b.set_field("%blk", at.BLOCK["noncoherent"], "i64", 1)
        looked_up = self._reached("global", offset)
        behind = b.label()
        b.jump(behind)
        b.place(behind)
        b.jump(on)
        b.place(plain)
        direct = b.op(f"getelementptr i8, ptr {self.g.invariant('arena', 'ptr')}, i64 {offset}")
        b.jump(on)
        b.place(on)
        return b.op(f"phi ptr [ {looked_up}, %{behind} ], [ {direct}, %{plain} ]")

    def _needed(self) -> int:
        if self.space == "const":
            return at.CONSTANT
        written = at.WRITTEN if self.g.level == "all" else 0
        return {"read": at.READABLE | written, "write": at.WRITABLE, "update": at.WRITABLE | written}[self.kind]

    def _within(self, offset: str, limit: str | int) -> str:
        """Whether `offset` is a multiple of the size and the access ends at or before `limit`.

        Rotated right, an offset with low bits set is larger than every limit, so one comparison says both.
        """
        shift = self.size.bit_length() - 1
        units = limit >> shift if isinstance(limit, int) else self.b.op(f"lshr i64 {limit}, {shift}")
        return self._below(offset, units)

    def _below(self, offset: str, units: str | int) -> str:
        """The same, with the limit in units of the size."""
        b, shift = self.b, self.size.bit_length() - 1
        turned = b.call("i64", "llvm.fshr.i64", ("i64", offset), ("i64", offset), ("i64", shift))
        return b.op(f"icmp ult i64 {turned}, {units}")

    def _shared(self, offset: str) -> str:
        g = self.g
        group = g.group_of(self.instruction)
        fixed = not g.layout.open_shared
        if group is None:
            limit = g.layout.shared_bytes if fixed else g.invariant("shared_bytes", "i64")
            g.require(self._within(offset, limit), self.site, offset)
        else:
            self._with_group(group, offset)
        return self.b.op(f"getelementptr i8, ptr {g.invariant('shared', 'ptr')}, i64 {offset}")

    def _with_group(self, group: Group, offset: str) -> None:
        """The check of all of a group, where its first access is."""
        b, g = self.b, self.g
        mine = self.memory_offset()
        group.members.append((mine, self.site))
        if len(group.members) > 1:
            return
        start = b.op(f"sub i64 {offset}, {mine - group.low}")
        limit: str | int = max(0, g.layout.shared_bytes - group.span)
        if g.layout.open_shared:
            whole = g.invariant("shared_bytes", "i64")
            limit = b.call("i64", "llvm.usub.sat.i64", ("i64", whole), ("i64", group.span))
        g.require(self._within(start, limit), g.site_of(group), start)

    def memory_offset(self) -> int:
        return next(operand.offset for operand in self.instruction.operands if isinstance(operand, Memory))

    def _local(self, offset: str, address: str) -> str:
        b, g = self.b, self.g
        g.require(self._within(offset, g.layout.local_bytes), self.site, address)
        start = b.op(f"getelementptr i8, ptr %ctx, i64 {g.layout.local_offset}")
        return b.op(f"getelementptr i8, ptr {start}, i64 {offset}")


def _is_strong(opcode: str) -> bool:
    """Whether an access takes part in the order between threads: atomics, volatile and ordered loads and stores."""
    words = opcode.split(".")
    return words[0] in ("atom", "red") or bool({"volatile", "relaxed", "acquire", "release"} & set(words))


def _ones(n: int) -> int:
    """n bytes of value 1, as an integer."""
    return int.from_bytes(b"\1" * n, "little")
