"""How many multiply-adds a quarter of a Hopper multiprocessor issues a cycle in a loop: a model, checked on no card.

It issues one instruction a cycle, greedily from one warp until that one must wait, and knows the compiler's stall
counts and scoreboards, barriers, passes of shared memory that four quarters share, and two banks of registers of which
each reads one register a cycle. What an instruction read of each operand and bank with the flag `reuse` is kept for the
next one (Huerta et al., "Analyzing Modern NVIDIA GPU Cores", 2025). Memory answers at once after a fixed time.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

LATENCY = {"LDS": 31, "LDG": 450, "LDGSTS": 500, "S2R": 20, "S2UR": 20, "LDC": 30}  # cycles; 20 where nothing is said
THROUGH_MEMORY = ("LDS", "STS", "LDG", "STG", "LDGSTS", "S2R", "S2UR")
NO_TARGET = ("STS", "STG", "BAR", "BRA", "LDGSTS", "ISETP")
QUARTERS, SCOREBOARDS, WINDOW, QUEUE, BARRIER = 4, 6, 3, 128, 20
ROUNDS = 4  # of the loop, as a mean over warps; the first is not counted


@dataclass(frozen=True)
class Instruction:
    """One instruction. `sets`: scoreboards that its result and its operands release; 7 is none. `waits`: on which."""

    operation: str
    operands: str = ""
    stall: int = 1
    sets: tuple[int, int] = (7, 7)
    waits: tuple[int, ...] = ()

    @cached_property
    def kind(self) -> str:
        return self.operation.split(".")[0]

    @cached_property
    def reads(self) -> tuple[tuple[int, int, bool], ...]:
        """Operand, register, and whether it is kept."""
        registers = re.findall(r"\b(R\d+|RZ)\b(\.reuse)?", self.operands)[0 if self.kind in NO_TARGET else 1 :]
        return tuple((at, int(name[1:]), bool(kept)) for at, (name, kept) in enumerate(registers) if name != "RZ")

    def passes(self, reading: int) -> int:
        """Of shared memory, or what takes its place; `reading`: of a read of 16 bytes a thread."""
        if self.kind == "LDS":
            return reading
        return 4 if self.kind in ("LDG", "LDGSTS") or self.operation.startswith("STS.128") else int(self.kind == "STS")


@dataclass
class Warp:
    """Where a warp is. `clear`: when each scoreboard is; `kept`: registers beside the file, by operand and bank."""

    ready: int
    at: int = 0
    rounds: int = 0
    stands: bool = False
    clear: list[int] = field(default_factory=lambda: [0] * SCOREBOARDS)
    kept: dict[tuple[int, int], int] = field(default_factory=dict)


class Quarter:
    """A quarter of a multiprocessor with its warps, all in the same loop."""

    def __init__(self, loop: Sequence[Instruction], blocks: int, each: int, passes: int) -> None:
        self.loop, self.each, self.passes = loop, each, passes
        self.warps = [Warp(ready=w // each * 259 + w % each * 3) for w in range(blocks * each)]
        self.now = self.memory = self.queue = self.alu = 0
        self.last = self.warps[0]
        self.read: dict[int, set[int]] = defaultdict(set)  # cycles in which a bank is read

    def may_issue(self, warp: Warp) -> bool:
        one = self.loop[warp.at]
        if warp.stands or warp.ready > self.now or any(warp.clear[b] > self.now for b in one.waits):
            return False
        if one.kind in THROUGH_MEMORY:
            return self.queue <= self.now and self.memory - self.now <= QUEUE
        return one.kind in ("FFMA", "IMAD") or self.alu <= self.now

    def banks(self, warp: Warp) -> list[int]:
        """How many registers of each bank the next instruction reads."""
        counts = [0, 0]
        for operand, register, _ in self.loop[warp.at].reads:
            counts[register % 2] += warp.kept.get((operand, register % 2)) != register
        return counts

    def places(self, counts: Sequence[int]) -> list[tuple[int, int]] | None:
        """Cycles in which so many registers can be read within the window; None where there are too few."""
        found: list[tuple[int, int]] = []
        for bank, count in enumerate(counts):
            free = [c for c in range(self.now + 1, self.now + 1 + WINDOW) if c not in self.read[bank]]
            if len(free) < count:
                return None
            found += [(bank, cycle) for cycle in free[:count]]
        return found

    def issue(self, warp: Warp) -> Instruction:
        one = self.loop[warp.at]
        if warp is not self.last:
            self.last.kept.clear()
        self.last = warp
        for operand, register, kept in one.reads:
            warp.kept[operand, register % 2] = register if kept else -1
        done, taken = self.now + LATENCY.get(one.kind, 20), self.now
        if one.kind in THROUGH_MEMORY:
            self.queue = self.now + 2
            self.memory = taken = max(self.now + 4, self.memory) + QUARTERS * one.passes(self.passes)
            done = taken + LATENCY.get(one.kind, 20) - 8
        elif one.kind not in ("FFMA", "IMAD"):
            self.alu = self.now + 2
        for scoreboard, when in zip(one.sets, (done, taken), strict=True):
            if scoreboard < SCOREBOARDS:
                warp.clear[scoreboard] = max(warp.clear[scoreboard], when)
        warp.ready = self.now + one.stall
        warp.at = (warp.at + 1) % len(self.loop)
        warp.rounds += warp.at == 0
        if one.kind == "BAR":
            self._stand(warp)
        return one

    def _stand(self, warp: Warp) -> None:
        warp.stands = True
        first = self.warps.index(warp) // self.each * self.each
        block = self.warps[first : first + self.each]
        if all(other.stands for other in block):
            for other in block:
                other.stands, other.ready = False, max(other.ready, self.now + BARRIER)


def rate(loop: Sequence[Instruction], warps: tuple[int, int], passes: int = 2, window: bool = True) -> float:
    """Multiply-adds a cycle in one quarter, at most 1; 1 in all quarters is the card's peak.

    `warps`: blocks on the multiprocessor, and warps of each in a quarter. `passes`: of shared memory for a read of 16
    bytes a thread. `window`: reads of a bank may wait up to three cycles; else a second one holds up what follows.
    """
    quarter = Quarter(loop, *warps, passes)
    counted = began = held = 0
    while (rounds := sum(w.rounds for w in quarter.warps)) < ROUNDS * len(quarter.warps):
        if rounds < len(quarter.warps):
            counted, began = 0, quarter.now
        candidates = [quarter.last, *(w for w in quarter.warps if w is not quarter.last)]
        warp = next((w for w in candidates if quarter.now >= held and quarter.may_issue(w)), None)
        if warp is not None:
            counts = quarter.banks(warp)
            places = quarter.places(counts) if window else []
            if places is not None:  # an instruction whose operands cannot be read yet holds up all others
                for bank, cycle in places:
                    quarter.read[bank].add(cycle)
                held = 0 if window else quarter.now + max(1, *counts)
                counted += quarter.issue(warp).kind == "FFMA"
        for bank in (0, 1):
            quarter.read[bank].discard(quarter.now)
        quarter.now += 1
    return counted / (quarter.now - began)
