"""Memory for the check of races in global memory: records of who touched what, and what blocks have published."""

import math

import numpy as np

from kerneltrial.devices.cpu import granules, order, races_global
from kerneltrial.devices.cpu.arena import Arena
from kerneltrial.devices.cpu.kernel import Kernel
from kerneltrial.devices.poison import POISON_BYTE
from kerneltrial.inputs.calls import ResolvedLaunch


class GlobalRecords:
    """Of one launch; none where they are not asked for, or would be too much. `checked`: they are not too much.

    The launch's workers share them; each has a log of fences of its own.
    """

    def __init__(self, kernel: Kernel, launch: ResolvedLaunch, arena: Arena) -> None:
        blocks, threads = math.prod(launch.grid), math.prod(launch.block)
        self._words, self._rows = order.covered_words(threads), blocks + 1
        of_place = 4 * self._rows * self._words
        size = ((arena.memory.size >> kernel.global_shift) + 1) * granules.RECORD_BYTES
        small = arena.memory.size <= races_global.MAX_BYTES and size <= races_global.MAX_RECORDS_BYTES
        fits = small and blocks <= races_global.MAX_BLOCKS
        self._places = min(order.MAX_PLACES, races_global.MAX_BYTES // of_place)
        self.checked = fits and self._places > 0
        self._on = kernel.level == "all" and self.checked
        self._shift = kernel.global_shift
        self._records = np.zeros(size if self._on else 0, np.uint8)
        self._published = np.zeros(self._places * self._rows * self._words if self._on else 0, np.int32)
        self._table = np.zeros(order.MAX_PLACES * order.PLACE_BYTES, np.uint8)
        self._used = np.zeros(1, np.int64)
        late = arena.poison != POISON_BYTE["nan"] and not arena.newest
        self._older = np.zeros(arena.memory.size if self._on and late else 0, np.uint8)
        self._sites = np.zeros((self._older.size >> kernel.global_shift) + 1, np.int32)  # of the last strong writes
        self._of_workers: list[np.ndarray] = []

    def fields(self) -> dict[str, int]:
        """Fields of one worker's state."""
        if not self._on:
            return {}
        log = np.zeros(order.LOG_ENTRIES * order.ENTRY_BYTES, np.uint8)
        covered = np.zeros(self._words, np.int32)
        self._of_workers += [log, covered]
        return {
            "global_shadow": self._records.ctypes.data,
            "global_shift": self._shift,
            "published": self._published.ctypes.data,
            "published_rows": self._rows,
            "places": self._table.ctypes.data,
            "places_used_at": self._used.ctypes.data,
            "places_most": self._places,
            "covered": covered.ctypes.data,
            "covered_words": self._words,
            "fence_log": log.ctypes.data,
            "older": self._older.ctypes.data if self._older.size else 0,
            "older_sites": self._sites.ctypes.data,
        }
