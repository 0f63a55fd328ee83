"""One entry of a binary, compiled at one level of checks."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from kerneltrial.devices.cpu import native
from kerneltrial.devices.cpu.blocks import Step
from kerneltrial.devices.cpu.counting import CountingGenerator
from kerneltrial.devices.cpu.flow import analyse
from kerneltrial.devices.cpu.generator import Generator, Level
from kerneltrial.devices.cpu.inline import flatten
from kerneltrial.devices.cpu.ir import module
from kerneltrial.devices.cpu.program import Layout, lay_out
from kerneltrial.devices.cpu.sites import Site
from kerneltrial.devices.cpu.superword import superwords
from kerneltrial.devices.cpu.syntax import Function, Module
from kerneltrial.devices.machine_code import MachineCode


@dataclass
class Kernel:
    """Machine code of an entry with all that a launch needs to know of it."""

    level: Level
    function: Function
    layout: Layout
    sites: list[Site]
    groups: list[Counter[str]]
    code: native.Native
    instructions: int
    partial_barriers: bool
    shares: bool = False
    """Set once blocks of a launch were found to meet in global memory: the next launch does not try cores again."""
    executed: int = 0
    """Instructions of a thread in the last launch, as the budget has them (0: none yet): what the next may take."""

    @cached_property
    def prints(self) -> bool:
        """Whether it calls printf."""
        return any(site.kind == "print" for site in self.sites)

    @property
    def separable(self) -> bool:
        """Whether `parallel` can see all that a block does in global memory: plain loads and stores of its own."""
        return self.level == "bounds" and not (self._meets or self.shares or self.prints)

    @cached_property
    def _meets(self) -> bool:
        return any(s.space == "generic" or (s.space == "global" and s.kind == "update") for s in self.sites)

    @property
    def address(self) -> int:
        return self.code.symbols["thread"]

    @property
    def granule_shift(self) -> int:
        """Log2 of the smallest shared access in bytes, at most 2."""
        sizes = [site.size for site in self.sites if site.space in ("shared", "generic") and site.size]
        return min([2, *(size.bit_length() - 1 for size in sizes)])

    @property
    def global_shift(self) -> int:
        """Log2 of the smallest global access in bytes, at most 2."""
        sizes = [site.size for site in self.sites if site.space in ("global", "generic") and site.size]
        return min([2, *(size.bit_length() - 1 for size in sizes)])


def compile_kernel(
    parsed: Module, entry: Function, level: Level, known: MachineCode, cooperative: bool = False
) -> Kernel:  # fmt: skip
    """Raises `Refused` for what the device does not know. Machine code is taken from `known`, or put there."""
    function = flatten(parsed, entry)
    flow = analyse(function, cooperative)
    if level == "bounds":
        flow.superwords = superwords(function, flow.blocks, flow.local)
    forms = [step.match.form for block in flow.blocks for step in block.steps]
    layout = lay_out(parsed, function, flow, max((form.words for form in forms), default=1))
    counting = CountingGenerator(function, flow, layout) if level == "count" else None
    generator = counting or Generator(function, flow, layout, level)
    text = module([generator.generate()], [generator.body])
    native.runtime()
    if any(form.group == "matrix" for form in forms):
        native.tensor_products()
    if any(form.host for form in forms):
        native.rounding_functions()
    code = native.compile_module(text, ("thread",), known, native.FAST if level == "bounds" else native.QUICK)
    count = sum(len(block.steps) for block in flow.blocks)
    partial = any(_of_some(step) for block in flow.blocks for step in block.steps)
    groups = counting.groups if counting else []
    return Kernel(level, function, layout, generator.sites, groups, code, count, partial)


def _of_some(step: Step) -> bool:
    """Whether an instruction is a barrier that some threads of a block pass without the others."""
    opcode, operands = step.instruction.opcode, step.instruction.operands
    if step.match.form.group != "barrier" or opcode.startswith("bar.warp"):
        return False
    return ".arrive" in opcode or len(operands) > (3 if ".red" in opcode else 1)
