"""Blocks of a launch on several cores, where that changes nothing; else one after the other, as always.

Each worker runs a range of the blocks. With bounds alone, a kernel without atomics and generic addresses is tried so: a
read of memory that the launch may write ends the try, as any fault does, and each worker notes the bytes that it
writes. If no two workers wrote the same byte, memory is what the blocks leave in any order, since none saw what another
did. Otherwise memory is put back and the launch runs in order, so that results and findings do not depend on the cores.
"""

import os
import threading
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kerneltrial.devices.cpu import layout as at
from kerneltrial.devices.cpu.arena import Arena
from kerneltrial.devices.cpu.kernel import Kernel
from kerneltrial.devices.cpu.launch import Worker, number_of_blocks, run_launch, threads_of_block
from kerneltrial.devices.cpu.launched import Launched
from kerneltrial.inputs.calls import ResolvedLaunch

MOST_WORKERS = 4
LEAST_INSTRUCTIONS = 1 << 20
INSTRUCTIONS_PER_BYTE = 4
"""A launch that executes no more, and so many for each byte of the call's memory, is over before a try would be:
threads start, and memory is copied, noted and compared. Measured with kernels that only copy."""
MOST_BYTES = 64 << 20
"""Of memory that is copied, and noted for each worker."""
_ONES = 0x0101010101010101
_PIECE = 1 << 16
"""Bytes that are compared at a time: what a core keeps near."""


def run_blocks(kernel: Kernel, launch: ResolvedLaunch, arena: Arena, budget: int) -> Launched:
    """Run one launch that `refusal` has nothing against, on as many cores as change nothing."""
    count = _workers(kernel, launch, arena)
    done = _try(kernel, launch, arena, budget, count) if count > 1 else None
    done = done or run_launch(kernel, launch, arena, budget)
    kernel.executed = max(1, (budget - done.budget) // (number_of_blocks(launch) * threads_of_block(launch)))
    return done


def _workers(kernel: Kernel, launch: ResolvedLaunch, arena: Arena) -> int:
    """How many workers a launch is tried with."""
    blocks, threads, size = number_of_blocks(launch), threads_of_block(launch), arena.memory.size
    large = max(size, threads * kernel.layout.context_bytes) > MOST_BYTES
    work = blocks * threads * (kernel.executed or kernel.instructions)
    if large or work < LEAST_INSTRUCTIONS + INSTRUCTIONS_PER_BYTE * size or not kernel.separable:
        return 1
    return min(len(os.sched_getaffinity(0)), MOST_WORKERS, blocks)


def _try(kernel: Kernel, launch: ResolvedLaunch, arena: Arena, budget: int, count: int) -> Launched | None:
    """What the launch left, or None where blocks met, or one failed: then memory is as it was before."""
    blocks = number_of_blocks(launch)
    before = arena.memory.copy()
    cuts = [blocks * k // count for k in range(count + 1)]
    workers = [Worker(kernel, launch, arena, budget, range(*cut)) for cut in pairwise(cuts)]
    marks = np.zeros((count, arena.memory.size), np.bool_)
    for worker, mine in zip(workers, marks, strict=True):
        worker.set(read_mask=(at.READABLE | at.WRITABLE) * _ONES, marks=mine.ctypes.data)
    spent = -1
    if all(_run_all(workers)):
        spent = sum(budget - worker.get("budget") for worker in workers)
    if not 0 <= spent < budget or _overlap(marks):
        arena.memory[:] = before
        kernel.shares = True
        return None
    barriers = sum(worker.get("barriers") for worker in workers)
    return Launched(None, budget - spent, barriers, workers[0].shared_bytes, races_checked=True, noncoherent=False)


def _run_all(workers: list[Worker]) -> list[bool]:
    """Run the first here and the others beside it; where no thread can be had, one after the other."""
    results = [False] * len(workers)

    def run(number: int) -> None:
        results[number] = workers[number].run()

    beside = [threading.Thread(target=run, args=(number,)) for number in range(1, len(workers))]
    started = []
    for thread in beside:
        try:
            thread.start()
            started.append(thread)
        except RuntimeError:
            break
    for number in (0, *range(len(started) + 1, len(workers))):
        run(number)
    for thread in started:
        thread.join()
    return results


def _overlap(marks: NDArray[np.bool_]) -> bool:
    """Whether two workers wrote the same byte."""
    return any(_meet(marks[:, start : start + _PIECE]) for start in range(0, marks.shape[1], _PIECE))


def _meet(marks: NDArray[np.bool_]) -> bool:
    seen = marks[0]
    for mine in marks[1:]:
        if bool((seen & mine).any()):
            return True
        seen = seen | mine
    return False
