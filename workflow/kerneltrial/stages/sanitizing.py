"""compute-sanitizer for a stage: asked as the protocol says, its word written once and found again."""

from collections.abc import Sequence

from kerneltrial.devices.cuda.sanitizer import Sanitizer
from kerneltrial.devices.device import Binary, Values
from kerneltrial.inputs.calls import Call
from kerneltrial.judge.setup import Sanitizes
from kerneltrial.records.sanitizer import NotLooked, Sanitized
from kerneltrial.stages.ground import Ground
from kerneltrial.store.canonical import digest


class _NotAll(Exception):
    """Not every tool looked: that is not kept, since it may be there the next time."""

    def __init__(self, sanitized: Sanitized) -> None:
        super().__init__("not every tool looked")
        self.sanitized = sanitized


class Kept:
    """A sanitizer whose word is a measurement: stored under what it looked at."""

    def __init__(self, g: Ground) -> None:
        self._g = g
        self._sanitizer = Sanitizer(g.nursery, g.lock.device.arch, float(g.lock.protocol.timeout_s))

    def __call__(self, binary: Binary, asked: Sequence[tuple[str, Call, Values]]) -> Sanitized:
        cases = tuple(case for case, _, _ in asked)
        request = self._sanitizer.request(binary, asked)
        key = {"sanitizers": digest(request), "cases": cases, "device": self._g.lock.device}

        def draw() -> Sanitized:
            found = self._sanitizer.look(request, cases)
            if any(isinstance(tool, NotLooked) for tool in found.tools):
                raise _NotAll(found)
            return found

        try:
            return self._g.job.measurements.once(key, draw, Sanitized).value
        except _NotAll as not_all:
            return not_all.sanitized


def sanitizer_of(g: Ground, *, winner: bool = False) -> Sanitizes | None:
    """The sanitizer, where the protocol asks for it: of every candidate, or of the winner in the confirmation."""
    wanted = g.lock.protocol.sanitizers
    if g.lock.device.kind != "cuda" or wanted == "none" or (wanted == "winner" and not winner):
        return None
    return Kept(g)
