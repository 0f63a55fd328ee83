"""What one launch on the host left."""

from dataclasses import dataclass

from kerneltrial.devices.cpu.printing import Prints
from kerneltrial.records.reason import Finding


@dataclass
class Launched:
    """What a launch left: a finding if it failed, what is left of the budget, barriers that blocks passed, and whether
    the launch is not too large to look for races in global memory.

    `noncoherent`: under all checks, such a load met memory that the launch may write; a card may give older bytes.
    `prints` is what a kernel that can print did print; `older` words on a read that got an older value, or nothing.
    """

    finding: Finding | None
    budget: int
    barriers: int
    shared_bytes: int
    races_checked: bool
    noncoherent: bool
    prints: Prints | None = None
    older: str = ""
