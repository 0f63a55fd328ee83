"""The host's side of counting: memory for logs and totals, and the sum over launches as `Counts`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from kerneltrial.devices.cpu import native, tally
from kerneltrial.devices.cpu.refusals import not_measured
from kerneltrial.records.counts import Counts

if TYPE_CHECKING:
    from kerneltrial.devices.cpu.kernel import Kernel
    from kerneltrial.devices.cpu.launched import Launched
    from kerneltrial.inputs.calls import ResolvedLaunch

CAPACITY = 1 << 16
"""Accesses that one lane can make between two waits; 16 MiB of memory for 32 lanes."""
_STRIDE = 8 * CAPACITY + 64 * 5  # no power of two, or 32 lanes would share the same few cache lines


class Tallies:
    """Arrays that one launch writes to: `counters` a run of instructions, `totals` as in `tally`."""

    def __init__(self, kernel: Kernel) -> None:
        self.counters = np.zeros(len(kernel.groups) + 1, np.int64)
        self.totals = np.zeros(tally.TOTALS, np.int64)
        self._lengths = np.zeros(32, np.int32)
        self._log = np.empty(32 * _STRIDE // 8, np.int64)
        self._sizes = np.array([site.size for site in kernel.sites], np.int32)

    def fields(self) -> dict[str, int]:
        """Fields of the block's state."""
        return {
            "counters": self.counters.ctypes.data,
            "totals": self.totals.ctypes.data,
            "log": self._log.ctypes.data,
            "log_lengths": self._lengths.ctypes.data,
            "log_stride": _STRIDE,
            "log_capacity": CAPACITY,
            "sizes": self._sizes.ctypes.data,
            "after_pass": native.runtime().symbols["after_pass"],
        }


class CallCounter:
    """Sums over the launches of a call."""

    def __init__(self) -> None:
        self._instructions: Counter[str] = Counter()
        self._totals = np.zeros(tally.TOTALS, np.int64)
        self._barriers = 0
        self._blocks = 0
        self._threads = 0
        self._shared_bytes = 0

    def start(self, kernel: Kernel) -> Tallies:
        return Tallies(kernel)

    def add(self, kernel: Kernel, launch: ResolvedLaunch, tallies: Tallies, launched: Launched) -> None:
        """Raises `Refused` (not_measured) where a log did not hold all accesses."""
        if tallies.totals[tally.OVERFLOWS]:
            raise not_measured(f"more than {CAPACITY} accesses of a thread between two barriers are not counted")
        for group, times in zip(kernel.groups, tallies.counters.tolist(), strict=False):
            for name, number in group.items():
                self._instructions[name] += number * times
        self._totals += tallies.totals
        self._barriers += launched.barriers
        self._blocks += launch.grid[0] * launch.grid[1] * launch.grid[2]
        self._threads = max(self._threads, launch.block[0] * launch.block[1] * launch.block[2])
        self._shared_bytes = max(self._shared_bytes, launched.shared_bytes)

    def counts(self) -> Counts:
        totals = [int(t) for t in self._totals]
        return Counts(
            instructions={name: count for name, count in sorted(self._instructions.items()) if count},
            global_transactions=totals[tally.SECTORS],
            shared_accesses=totals[tally.SHARED_ACCESSES],
            shared_conflicts=totals[tally.CONFLICTS],
            barriers=self._barriers,
            blocks=self._blocks,
            threads_per_block=self._threads,
            shared_bytes=self._shared_bytes,
        )
