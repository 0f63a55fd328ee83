"""compute-sanitizer's tools as checks of their own: what each would see, and what came of asking it."""

from collections.abc import Mapping
from typing import Final, Literal

from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.record import Record

Tool = Literal["memcheck", "racecheck", "initcheck", "synccheck"]
TOOLS: Final[tuple[Tool, ...]] = ("memcheck", "racecheck", "initcheck", "synccheck")
SEES: Final[Mapping[Tool, str]] = {
    "memcheck": "reads outside a buffer, and writes beyond the 4 KiB margins, that do not fault",
    "racecheck": "races in shared memory",
    "initcheck": "reads of memory that was never written",
    "synccheck": "barriers that not all threads reach",
}
BETWEEN_BLOCKS: Final = Finding(
    reason=Reason.CHECK_ABSENT, detail="no tool looks for races between blocks in global memory"
)
"""What a card's runs say; where the `cpu` device looked at the same PTX, its word takes the place of this one."""
CPU_DEVICE: Final = "cpu_device"
"""That look, among the checks of a validation."""


class Looked(Record, tag_field="state", tag="looked"):
    """A tool looked at calls of these cases.

    `findings` are the candidate's faults, `unchecked` what it only warned of. One that found a fault may have stopped
    there.
    """

    tool: Tool
    cases: tuple[str, ...]
    findings: tuple[Finding, ...]
    unchecked: tuple[Finding, ...]


class NotLooked(Record, tag_field="state", tag="not_looked"):
    """A tool did not look, or not to the end, and why."""

    tool: Tool
    why: str


class Sanitized(Record):
    """What came of each tool, in the order of `TOOLS`."""

    tools: tuple[Looked | NotLooked, ...]


def not_run(tool: Tool, why: str = "") -> Finding:
    """The words for a tool that was not run."""
    because = f" ({why})" if why else ""
    return Finding(reason=Reason.CHECK_ABSENT, detail=f"{tool} was not run{because}: {SEES[tool]}")
