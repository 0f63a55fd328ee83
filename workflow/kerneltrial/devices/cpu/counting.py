"""The variant of a kernel that counts: how often each run of instructions is executed, and a log of accesses.

Each access appends (site, address) to its lane's log (`reach`). When all lanes of a warp have run as far as they
can, `tally.after_pass` puts the accesses together that a warp would issue as one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.generator import Generator
from kerneltrial.devices.cpu.refusals import not_measured

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.blocks import Step
    from kerneltrial.devices.cpu.flow import Flow
    from kerneltrial.devices.cpu.program import Layout
    from kerneltrial.devices.cpu.syntax import Function, Instruction

_MAX_SITES = 32_000


class CountingGenerator(Generator):
    """`groups` has, for each counter, how many instructions of each class it stands for."""

    def __init__(self, function: Function, flow: Flow, layout: Layout) -> None:
        super().__init__(function, flow, layout, "count")
        self.groups: list[Counter[str]] = []

    def enter(self) -> None:
        """Each run of a thread begins an empty log, which `reach` appends to."""
        b = self.body
        lengths = b.field("%blk", at.BLOCK["log_lengths"], "ptr")
        lane = b.op(f"sext i32 {self.context_field(at.LANE)} to i64")
        b.do(f"store i32 0, ptr {b.op(f'getelementptr i32, ptr {lengths}, i64 {lane}')}")

    def site(self, instruction: Instruction, space: str = "", kind: str = "", size: int = 0) -> int:
        """As everywhere; a log entry has room for so many."""
        if len(self.sites) > _MAX_SITES:
            raise not_measured(f"a kernel with more than {_MAX_SITES} accesses is not counted")
        return super().site(instruction, space, kind, size)

    def passed(self, steps: list[Step]) -> None:
        if not steps:
            return
        b = self.body
        counters = self.invariant("counters", "ptr")
        place = b.op(f"getelementptr i64, ptr {counters}, i64 {len(self.groups)}")
        count = b.op(f"load i64, ptr {place}")
        b.do(f"store i64 {b.op(f'add i64 {count}, 1')}, ptr {place}")
        self.groups.append(Counter(group_of(step) for step in steps))


def group_of(step: Step) -> str:
    """The class that an instruction is counted in: that of its form, for memory with the space."""
    group = step.match.form.group
    if group in ("load", "store", "atomic"):
        space = step.match.fields.get("space", "").lstrip(".").split(":")[0] or "generic"
        return f"{group}_{space}"
    return group
