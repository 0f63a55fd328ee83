"""What a compiler makes of the contract's torch expression: a figure to stand beside the team's baseline."""

from typing import Literal

from kerneltrial.records.record import Name, Record, Text

CompilerName = Literal["torch_eager", "torch_compile"]


class CompilerLatency(Record, tag_field="state", tag="measured"):
    """Microseconds of one call by performance case, by torch's own CUDA graph of many; `version` is torch's.

    It was measured in another process than any candidate, so it is for orientation and for rewards, not for decisions.
    """

    name: CompilerName
    version: str
    cases: dict[Name, float]


class NoCompiler(Record, tag_field="state", tag="none"):
    """It was not measured, and why."""

    name: CompilerName
    why: Text


class Compilers(Record):
    """One entry a compiler; none where the contract names no torch expression or nothing is timed."""

    entries: tuple[CompilerLatency | NoCompiler, ...] = ()
