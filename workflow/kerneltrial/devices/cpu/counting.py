"""The variant of a kernel that counts: how often each run of instructions is executed, and a log of accesses.

Each thread appends (site, address) of every access to its lane's log. When all lanes of a warp have run as far as they
can, `tally.after_pass` puts the accesses together that a warp would issue as one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.generator import Generator
from kerneltrial.devices.cpu.refusals import not_measured

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.access import Access
    from kerneltrial.devices.cpu.blocks import Step
    from kerneltrial.devices.cpu.flow import Flow
    from kerneltrial.devices.cpu.program import Layout
    from kerneltrial.devices.cpu.syntax import Function

ADDRESS_BITS = 48
_MAX_SITES = 32_000


class CountingGenerator(Generator):
    """`groups` has, for each counter, how many instructions of each class it stands for."""

    def __init__(self, function: Function, flow: Flow, layout: Layout) -> None:
        super().__init__(function, flow, layout, "count")
        self.groups: list[Counter[str]] = []
        self._length = self.body.variable("i32")

    def enter(self) -> None:
        self._length.set(0)

    def finish(self, status: int) -> None:
        b = self.body
        lengths = b.field("%blk", at.BLOCK["log_lengths"], "ptr")
        lane = b.op(f"sext i32 {self.context_field(at.LANE)} to i64")
        b.do(f"store i32 {self._length.get()}, ptr {b.op(f'getelementptr i32, ptr {lengths}, i64 {lane}')}")
        super().finish(status)

    def passed(self, steps: list[Step]) -> None:
        if not steps:
            return
        b = self.body
        counters = b.field("%blk", at.BLOCK["counters"], "ptr", "!invariant.load !0")
        place = b.op(f"getelementptr i64, ptr {counters}, i64 {len(self.groups)}")
        count = b.op(f"load i64, ptr {place}")
        b.do(f"store i64 {b.op(f'add i64 {count}, 1')}, ptr {place}")
        self.groups.append(Counter(group_of(step) for step in steps))

    def record(self, access: Access, address: str, shared: bool) -> None:
        """Append to the lane's log; what does not fit is only counted, and the tally refuses then."""
        if access.site > _MAX_SITES:
            raise not_measured(f"a kernel with more than {_MAX_SITES} accesses is not counted")
        b = self.body
        length = self._length.get()
        self._length.set(b.op(f"add i32 {length}, 1"))
        capacity = b.field("%blk", at.BLOCK["log_capacity"], "i32", "!invariant.load !0")
        last = b.op(f"sub i32 {capacity}, 1")
        index = b.op(f"zext i32 {b.call('i32', 'llvm.umin.i32', ('i32', length), ('i32', last))} to i64")
        stride = b.field("%blk", at.BLOCK["log_stride"], "i64", "!invariant.load !0")
        lane = b.op(f"sext i32 {self.context_field(at.LANE)} to i64")
        log = b.field("%blk", at.BLOCK["log"], "ptr", "!invariant.load !0")
        mine = b.op(f"getelementptr i8, ptr {log}, i64 {b.op(f'mul i64 {lane}, {stride}')}")
        place = b.op(f"getelementptr i64, ptr {mine}, i64 {index}")
        low = b.op(f"and i64 {address}, {(1 << ADDRESS_BITS) - 1}")
        key = (2 * access.site + shared) << ADDRESS_BITS
        b.do(f"store i64 {b.op(f'or i64 {low}, {_signed(key)}')}, ptr {place}")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def group_of(step: Step) -> str:
    """The class that an instruction is counted in: that of its form, for memory with the space."""
    group = step.match.form.group
    if group in ("load", "store", "atomic"):
        space = step.match.fields.get("space", "").lstrip(".").split(":")[0] or "generic"
        return f"{group}_{space}"
    return group
