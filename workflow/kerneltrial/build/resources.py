"""What the assembler's log says of each kernel: registers, spills, static shared memory."""

import re
from typing import NamedTuple

_TIME = re.compile(r"^.*Compile time = .*\n?", re.MULTILINE)
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


class Resources(NamedTuple):
    """Registers a thread; bytes a thread that spill (stores and loads); bytes of static shared memory a block."""

    registers: int
    spilled_bytes: int
    shared_bytes: int


def without_times(log: str) -> str:
    """The log less how long things took, which differs from run to run."""
    return _TIME.sub("", log)


def resources(log: str) -> dict[str, Resources]:
    """Return the resources of each entry in a log of `ptxas -v`, by name.

    Spills of functions that an entry calls are in its sum. A log without such lines gives nothing.
    """
    parts = _ENTRY.split(log)
    return {name: _of_entry(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _of_entry(text: str) -> Resources:
    used = next((line for line in text.splitlines() if _REGISTERS.search(line)), "")
    registers, shared = _REGISTERS.search(used), _SHARED.search(used)
    return Resources(
        registers=int(registers.group(1)) if registers else 0,
        spilled_bytes=sum(int(stores) + int(loads) for stores, loads in _SPILLS.findall(text)),
        shared_bytes=int(shared.group(1)) if shared else 0,
    )
