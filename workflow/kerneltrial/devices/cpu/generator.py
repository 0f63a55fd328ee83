"""LLVM IR of one kernel's thread: operands, guards, control flow, and where a thread waits and resumes.

The function `thread(block, context)` runs one thread until it ends, waits or fails, and says which. Registers are
allocas, which LLVM turns into SSA form; what lives across a wait is spilled to the thread's context before.
"""

from typing import Literal

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu import lower_superword
from kerneltrial.devices.cpu.blocks import Block, Step
from kerneltrial.devices.cpu.flow import Flow, bits
from kerneltrial.devices.cpu.grouping import Group, shared_groups
from kerneltrial.devices.cpu.ir import LIKELY, Body
from kerneltrial.devices.cpu.lower_float import canonical_nan
from kerneltrial.devices.cpu.operands import FIXED, Operands
from kerneltrial.devices.cpu.program import Layout
from kerneltrial.devices.cpu.sites import FAULT, Site
from kerneltrial.devices.cpu.spilling import live_across, stored_before_wait
from kerneltrial.devices.cpu.syntax import WIDTHS, Function, Instruction, Operand, Register

Level = Literal["bounds", "all", "count"]
Kind = Literal["read", "write", "update"]


class Generator(Operands):
    """Makes the thread function of one flattened entry."""

    def __init__(self, function: Function, flow: Flow, layout: Layout, level: Level) -> None:
        super().__init__(Body(), function, flow, layout)
        self.level = level
        self.sites: list[Site] = [Site(0, "")]
        self._cold: list[str] = []
        self._resumes: list[str] = []
        self._groups: dict[int, Group] = {}
        self._stored = stored_before_wait(flow)
        self._targets = {block.target for block in flow.blocks}

    def generate(self) -> str:
        """The text of the function, and of what it calls itself."""
        body = self.body
        self.declare_registers()
        lower_superword.declare(self)
        self.enter()
        switch = len(body.lines)
        for block in self.flow.blocks:
            body.place(f"B{block.index}")
            self._block(block)
        body.lines[0:0] = self.heads
        switch += len(self.heads)
        resumes = " ".join(f"i32 {n + 1}, label %{label}" for n, label in enumerate(self._resumes))
        state = self.context_field(at.STATE)
        entry = [body.lines.pop(), body.lines.pop()][::-1]
        entry.append(f"  switch i32 {state}, label %B0 [ {resumes} ]")
        body.lines[switch:switch] = entry
        body.lines.extend(self._cold)
        body.place("fail")
        body.do(f"ret i32 {at.FAILED}")
        return FAULT + body.function("define i32 @thread(ptr noalias %blk, ptr noalias %ctx)")

    # -- faults

    def site(self, instruction: Instruction, space: str = "", kind: str = "", size: int = 0) -> int:
        self.sites.append(Site(instruction.line, instruction.opcode, space, kind, size))
        return len(self.sites) - 1

    def site_of(self, group: Group) -> int:
        """The one site of a group's check."""
        if group.site < 0:
            self.sites.append(Site(0, "", group=group))
            group.site = len(self.sites) - 1
        return group.site

    def require(self, condition: str, site: int, address: str = "0") -> None:
        """Go on if `condition` holds; else note the fault and end the thread."""
        body = self.body
        on, off = body.label(), body.label()
        body.branch(condition, on, off, LIKELY)
        self._cold += [
            f"{off}:",
            f"  call void @fault(ptr %blk, ptr %ctx, i64 {site}, i64 {address})",
            "  br label %fail",
        ]
        body.place(on)

    # -- blocks

    def group_of(self, instruction: Instruction) -> Group | None:
        """The accesses that one check covers together with this one's, in this block."""
        return self._groups.get(id(instruction))

    def _block(self, block: Block) -> None:
        if block.index in self._targets:
            self.at_hand.clear()
        self._groups = shared_groups(block) if self.level == "bounds" else {}
        last = [block.last] if block.steps and block.ends != "fall" else []
        self.passed([step for step in block.steps if step in last or step.instruction.guard is None])
        for step in block.steps[:-1]:
            self._step(step)
        if not block.steps:
            self._go_on(block)
        elif block.ends == "fall":
            self._step(block.last)
            self._go_on(block)
        elif block.ends == "bra":
            self._branch(block)
        elif block.ends == "sync":
            self._step(block.last)
            self._go_on(block)
        else:
            self._leave(block)

    def _go_on(self, block: Block) -> None:
        if block.index + 1 < len(self.flow.blocks):
            self.body.jump(f"B{block.index + 1}")
        else:
            self.finish(at.DONE)

    def _branch(self, block: Block) -> None:
        step = block.last
        target = f"B{block.target}"
        if block.target > block.index:
            self._choose(block, target)
            return
        back = self.body.label()
        self._choose(block, back)
        self.body.place(back)
        self._charge(block, step)
        if block.index in self.flow.spins:
            live = self.flow.blocks[block.target].live_in
            self._pause(at.AT_SPIN, live, live)
        self.body.jump(target)

    def _choose(self, block: Block, target: str) -> None:
        """Branch to `target` under the instruction's guard, else fall through."""
        instruction = block.last.instruction
        if instruction.guard is None:
            self.body.jump(target)
            return
        if block.index + 1 < len(self.flow.blocks):
            self.body.branch(self.guard(instruction), target, f"B{block.index + 1}")
            return
        end = self.body.label()
        self.body.branch(self.guard(instruction), target, end)
        self.body.place(end)
        self.finish(at.DONE)

    def _charge(self, block: Block, step: Step) -> None:
        """Take the loop's instructions from the budget, so that no loop is endless."""
        body = self.body
        cost = sum(len(b.steps) for b in self.flow.blocks[block.target : block.index + 1])
        left = body.op(f"sub i64 {body.field('%blk', at.BLOCK['budget'], 'i64')}, {max(1, cost)}")
        body.set_field("%blk", at.BLOCK["budget"], "i64", left)
        self.require(body.op(f"icmp sgt i64 {left}, 0"), self.site(step.instruction, kind="budget"))

    def _leave(self, block: Block) -> None:
        instruction = block.last.instruction
        if instruction.guard is None:
            self._end(block)
            return
        inside = self.body.label()
        self._choose_end(block, inside)
        self.body.place(inside)
        self._end(block)

    def _choose_end(self, block: Block, inside: str) -> None:
        if block.index + 1 < len(self.flow.blocks):
            self.body.branch(self.guard(block.last.instruction), inside, f"B{block.index + 1}")
        else:
            self.body.jump(inside)

    def _end(self, block: Block) -> None:
        if block.ends == "trap":
            site = self.site(block.last.instruction, kind="trap")
            self.body.do(f"call void @fault(ptr %blk, ptr %ctx, i64 {site}, i64 0)")
            self.body.jump("fail")
        else:
            self.finish(at.DONE)

    # -- instructions

    def guard(self, instruction: Instruction) -> str:
        assert instruction.guard is not None
        value = self.predicate(instruction.guard, instruction)
        return self.body.op(f"xor i1 {value}, true") if instruction.negated else value

    def _step(self, step: Step) -> None:
        key, found = id(step.instruction), self.flow.superwords
        if key in found.first:
            lower_superword.multiply_add(self, found.first[key])
        elif key in found.covered:
            pass
        elif step.instruction.guard is None:
            self._plain(step)
        else:
            with self.body.when(self.guard(step.instruction)):
                self.passed([step])
                self._plain(step)

    def _plain(self, step: Step) -> None:
        form, fields = step.match.form, step.match.fields
        instruction = step.instruction
        if form.raw:
            form.lower(self, instruction, fields)
            return
        values: list[str | int] = []
        destinations: list[tuple[Operand, str]] = []
        for spec, operand in zip(form.specs, instruction.operands, strict=False):
            if spec.startswith("="):
                destinations.append((operand, step.match.type_of(spec)))
            elif spec == "#":
                values.append(self.constant(operand))
            else:
                values.append(self.value(operand, step.match.type_of(spec), instruction))
        result = form.lower(self.body, fields, *values)
        operand, type_ = destinations[0]
        if form.nan and not (isinstance(operand, Register) and operand.index in self.flow.pure):
            result = canonical_nan(self.body, self.body.op(f"bitcast float {result} to i32"))
            type_ = "b32"
        self.assign_results(operand, type_, result, instruction)

    # -- what a variant that counts adds

    def enter(self) -> None:
        """What is done whenever the thread begins or resumes."""

    def finish(self, status: int) -> None:
        """Return to the scheduler."""
        self.body.do(f"ret i32 {status}")

    def passed(self, steps: "list[Step]") -> None:
        """Note that these steps are executed."""

    # -- waiting

    def wait(self, status: int, mask: str, words: list[str], instruction: Instruction) -> None:
        """Return to the scheduler with `status`; what follows is where the thread resumes. `mask` may be empty."""
        body = self.body
        block = next(b for b in self.flow.blocks if b.steps and b.last.instruction is instruction)
        live = live_across(self.flow, block)
        for n, word in enumerate(words):
            body.set_field("%ctx", at.PUBLIC + 4 * n, "i32", word)
        if mask:
            body.set_field("%ctx", at.MASK, "i32", mask)
        self._pause(status, live, live & ~self._stored[block.index])

    def _pause(self, status: int, live: int, changed: int) -> None:
        """Store the registers `changed` and return; load the `live` ones where the thread resumes."""
        body = self.body
        body.set_field("%ctx", at.STATE, "i32", len(self._resumes) + 1)
        for register in bits(lower_superword.spill(self, changed & ~self.kept)):
            self._spill(register)
        self.finish(status)
        label = body.label()
        self._resumes.append(label)
        body.place(label)
        self.at_hand.clear()
        for register in bits(lower_superword.reload(self, live & ~self.kept)):
            self._reload(register)

    def _spill(self, register: int) -> None:
        width = WIDTHS[self.function.registers[register]]
        value = self.raw(register)
        if width == 1:
            value, width = self.body.op(f"zext i1 {value} to i8"), 8
        self.body.set_field("%ctx", self.layout.spills[register], f"i{width}", value)

    def _reload(self, register: int) -> None:
        width = WIDTHS[self.function.registers[register]]
        value = self.body.field("%ctx", self.layout.spills[register], f"i{max(8, width)}")
        if width == 1:
            value = self.body.op(f"trunc i8 {value} to i1")
        self.body.do(f"store i{width} {value}, ptr {self.register_pointer(register)}")

    # -- fields

    def context_field(self, offset: int) -> str:
        return self.own(offset) if offset in FIXED else self.body.field("%ctx", offset, "i32")
