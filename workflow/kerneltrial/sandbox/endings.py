"""How a child ended, told by what the kernel says of it."""

import signal
from typing import Literal, NamedTuple

from kerneltrial.records.record import Count, Record
from kerneltrial.sandbox.child import OUT_OF_MEMORY
from kerneltrial.sandbox.limits import Limits

How = Literal["exit", "signal", "wall", "cpu", "memory"]
_MEMORY_SIGNS = ("bad_alloc", "MemoryError", "out of memory", "Cannot allocate memory", "failed to allocate")
_BROKEN = {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP}


class Usage(Record):
    """What a child used: processor seconds of it and of the children that it waited for, wall seconds, peak memory."""

    cpu_s: float
    wall_s: float
    max_rss_bytes: Count


class Ended(Record):
    """The child is gone. `detail` holds the end of what it wrote to its standard output and error."""

    how: How
    detail: str


class Report(Record):
    """What a supervisor tells the parent, once."""

    ended: Ended
    usage: Usage


class Seen(NamedTuple):
    """What a supervisor saw of an end.

    `status` is the wait status; `killed` says that the supervisor ended it, since its time was up or it was asked to;
    `output` is the end of its standard output and error; `grown_bytes` is its peak of memory less what it was born
    with.
    """

    status: int
    killed: bool
    output: str
    grown_bytes: int


def classify(seen: Seen, usage: Usage, limits: Limits) -> Ended:
    """Say how a child ended."""
    status, killed, output, grown = seen
    if killed:
        return Ended(how="wall", detail=_told("killed by the watchdog", output))
    if not _signalled(status):
        code = status >> 8
        if code == OUT_OF_MEMORY or (code and any(sign in output for sign in _MEMORY_SIGNS)):
            return Ended(how="memory", detail=_told("out of memory", output))
        return Ended(how="exit", detail=_told(f"exit status {code}", output))
    number = status & 0x7F
    name = signal.Signals(number).name if number in signal.Signals._value2member_map_ else f"signal {number}"
    if number == signal.SIGXCPU or (number == signal.SIGKILL and usage.cpu_s >= limits.cpu_s):
        return Ended(how="cpu", detail=_told(f"more than {limits.cpu_s} s of processor time", output))
    if number in _BROKEN and _exhausted(output, grown, limits):
        return Ended(how="memory", detail=_told(f"{name}, out of memory", output))
    return Ended(how="signal", detail=_told(name, output))


def _signalled(status: int) -> bool:
    return bool(status & 0x7F)


def _exhausted(output: str, grown: int, limits: Limits) -> bool:
    if any(sign in output for sign in _MEMORY_SIGNS):
        return True
    return bool(limits.memory_bytes) and grown >= 0.8 * limits.memory_bytes


def _told(what: str, output: str) -> str:
    return f"{what}: {output.strip()}" if output.strip() else what
