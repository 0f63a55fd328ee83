"""What the card does at most, by streaming and multiply-add kernels of our own.

The kernels are PTX of an old version (`ceilings_ptx`), which every driver since CUDA 12 assembles. Each figure is the
median of many launches, and the largest median over a few launch shapes is taken: nobody knows beforehand which shape a
card likes best. A memory copy by the driver is no ceiling: on an H200 it moved 2.8 TB/s where kernels moved 4.1.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from kerneltrial.devices.cuda import ceilings_ptx, state
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.driver import call, release
from kerneltrial.devices.cuda.launches import BoundLaunch, Module, row_of_blocks
from kerneltrial.devices.cuda.memory import settle
from kerneltrial.devices.cuda.queue import Graph
from kerneltrial.inputs.calls import Pointer, Scalar
from kerneltrial.records.roofline import Ceilings

_THREADS = 256
_BLOCKS = (2, 4, 8)  # resident blocks of 256 threads a multiprocessor; a wave runs at once
_READINGS = 15
_WARM_UP_US = 100_000.0  # clocks rise from idle within this time
_TARGET_US = 1_000.0  # of one reading: long beside the 0.5 us of events
_DRAM_OVER_L2 = 16  # how many times the L2's size is streamed
_L2_SHARES = (8, 4)  # parts of the L2 that are read again and again: one eighth, one quarter
_EMPTY_NODES = 256
_TRIAL_ROUNDS = 256


class _Bench:
    """Launches on one stream, and how long they take."""

    def __init__(self, context: Context, memory: int, end: int) -> None:
        self._context = context
        self._addresses = {"start": memory, "end": end}
        self.multiprocessors = int(context.device.fingerprint["multiprocessors"])
        self._modules: dict[str, Module] = {}

    def launch(self, text: str, blocks: int, parameters: Sequence[Pointer | Scalar], target: int = 0) -> BoundLaunch:
        """A launch of PTX's entry `main`, of `blocks` blocks of 256 threads."""
        if text not in self._modules:
            self._modules[text] = Module(text.encode() + b"\0")
        resolved = row_of_blocks("main", blocks, _THREADS, parameters)
        addresses = {**self._addresses, "target": target}
        return BoundLaunch(self._modules[text], resolved, addresses, self._context.queue.stream)

    def us(self, work: Callable[[], None]) -> float:
        """Median microseconds of what `work` puts on the stream."""
        queue, readings = self._context.queue, []
        for _ in range(_READINGS):
            with queue.held():
                queue.record(queue.start)
                work()
                queue.record(queue.end)
            queue.wait()
            readings.append(queue.elapsed_us())
        return median(readings)

    def warm_up(self, work: Callable[[], None]) -> None:
        spent = 0.0
        while spent < _WARM_UP_US:
            spent += max(self.us(work), 1.0) * _READINGS

    def free(self) -> None:
        for module in self._modules.values():
            module.unload()


def measure(context: Context) -> Ceilings:
    """Measure all ceilings; takes about a second.

    Raises
    ------
    CudaError
        As the driver tells it.
    """
    before = state.now(context.nvml)
    l2_bytes = int(context.device.fingerprint["l2_bytes"])
    with _memory(context, _DRAM_OVER_L2 * max(l2_bytes, 1 << 22)) as (memory, nbytes, end):
        bench = _Bench(context, memory, end)
        try:
            readings = {
                **_arithmetic(bench, "f32"),
                **_arithmetic(bench, "f64"),
                **_streams(bench, memory, nbytes),
                **_cached(bench, l2_bytes),
                "launch_us": _launch_us(context, bench),
            }
        finally:
            bench.free()
    return Ceilings(
        dram_bytes_per_s=_best(readings, "dram"),
        l2_bytes_per_s=_best(readings, "l2"),
        l2_bytes=l2_bytes,
        fp32_flop_per_s=_best(readings, "f32"),
        fp64_flop_per_s=_best(readings, "f64"),
        launch_us=readings["launch_us"],
        readings=readings,
        device_state={f"before_{k}": v for k, v in before.items()}
        | {f"after_{k}": v for k, v in state.now(context.nvml).items()},
    )


def _best(readings: Mapping[str, float], prefix: str) -> float:
    return max(figure for name, figure in readings.items() if name.split("_")[0] == prefix)


@contextmanager
def _memory(context: Context, wanted: int) -> Iterator[tuple[int, int, int]]:
    """Zeroed memory (address, bytes, and the address of one more word behind it)."""
    address = int(call("cuMemAlloc", wanted + 256))
    try:
        call("cuMemsetD8", address, 0, wanted + 256)
        settle()
        yield address, wanted, address + wanted
    finally:
        release("cuMemFree", address)


def _arithmetic(bench: _Bench, kind: str) -> dict[str, float]:
    """Multiply-adds in independent chains; an addition and a multiplication count as two operations."""
    found: dict[str, float] = {}
    text = ceilings_ptx.multiply_add(kind)

    def launch(blocks: int, rounds: int) -> BoundLaunch:
        return bench.launch(text, blocks, (_word(rounds), Pointer(buffer="end")))

    bench.warm_up(launch(_BLOCKS[-1] * bench.multiprocessors, _TRIAL_ROUNDS).enqueue)
    for per_multiprocessor in _BLOCKS:
        blocks = per_multiprocessor * bench.multiprocessors
        trial_us = max(bench.us(launch(blocks, _TRIAL_ROUNDS).enqueue), 1.0)
        rounds = max(_TRIAL_ROUNDS, int(_TRIAL_ROUNDS * _TARGET_US / trial_us))
        work = 2 * ceilings_ptx.OPERATIONS_A_ROUND * rounds * blocks * _THREADS
        us = bench.us(launch(blocks, rounds).enqueue)
        found[f"{kind}_flop_per_s_{per_multiprocessor}_blocks"] = work / us * 1e6
    return found


def _streams(bench: _Bench, memory: int, nbytes: int) -> dict[str, float]:
    """Reads, and copies from one half to the other, of memory far larger than the L2."""
    found: dict[str, float] = {}
    for per_multiprocessor in _BLOCKS:
        blocks = per_multiprocessor * bench.multiprocessors
        steps, moved = _steps(nbytes, blocks)
        read = bench.launch(ceilings_ptx.READ, blocks, _reads(steps, 1))
        found[f"dram_read_bytes_per_s_{per_multiprocessor}_blocks"] = moved / bench.us(read.enqueue) * 1e6
        steps, moved = _steps(nbytes // 2, blocks)
        parameters = (Pointer(buffer="start"), Pointer(buffer="target"), _word(steps))
        copy = bench.launch(ceilings_ptx.COPY, blocks, parameters, target=memory + nbytes // 2)
        found[f"dram_copy_bytes_per_s_{per_multiprocessor}_blocks"] = 2 * moved / bench.us(copy.enqueue) * 1e6
    return found


def _cached(bench: _Bench, l2_bytes: int) -> dict[str, float]:
    """Reads of a part of the L2's size, again and again within one launch."""
    found: dict[str, float] = {}
    for part in _L2_SHARES:
        for per_multiprocessor in _BLOCKS:
            blocks = per_multiprocessor * bench.multiprocessors
            steps, moved = _steps(l2_bytes // part, blocks)
            few = bench.us(bench.launch(ceilings_ptx.READ, blocks, _reads(steps, 4)).enqueue)
            passes = max(8, int(4 * _TARGET_US / max(few, 1.0)))
            us = bench.us(bench.launch(ceilings_ptx.READ, blocks, _reads(steps, passes)).enqueue)
            found[f"l2_read_bytes_per_s_1_in_{part}_{per_multiprocessor}_blocks"] = moved * passes / us * 1e6
    return found


def _launch_us(context: Context, bench: _Bench) -> float:
    empty = bench.launch(ceilings_ptx.EMPTY, 1, ())

    def enqueue() -> None:
        for _ in range(_EMPTY_NODES):
            empty.enqueue()

    graph: Graph = context.queue.graph(enqueue)
    try:
        graph.launch()
        return bench.us(graph.launch) / _EMPTY_NODES
    finally:
        graph.free()


def _steps(nbytes: int, blocks: int) -> tuple[int, int]:
    """Steps of a thread through so many bytes, and the bytes that all threads then touch."""
    a_step = ceilings_ptx.BYTES_A_STEP * blocks * _THREADS
    steps = max(1, nbytes // a_step)
    return steps, steps * a_step


def _reads(steps: int, passes: int) -> tuple[Any, ...]:
    return Pointer(buffer="start"), _word(steps), _word(passes), Pointer(buffer="end")


def _word(value: int) -> Scalar:
    return Scalar(bytes=4, bits=value)
