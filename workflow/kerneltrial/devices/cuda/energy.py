"""Energy of a call, by NVML's counter of all energy that the card has used since its driver was loaded.

The counter moves in steps some tens of milliseconds apart, so a block of many calls is measured from one step to
another, with the card under the same load before the first. What is counted is the whole card's: idle power and memory
are in.
"""

import time
from collections.abc import Callable, Mapping
from itertools import count

from kerneltrial.devices.cuda.clocks import batch_graph, rough_us
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.queue import Graph
from kerneltrial.devices.cuda.subjects import SharedBuffers, Subject

COUNTER = "nvmlDeviceGetTotalEnergyConsumption"  # millijoules
_ORDER = ("a", "b", "b", "a")  # a steady drift of the card's temperature falls out of the ratio
_BLOCK_S = 0.3
_TICK_AT_MOST_S = 1.0  # a counter that stands still for so long under load is none
_LAUNCH_US = 2000.0  # of one graph: the error at each end of a block is at most this
_CALLS_AT_MOST = 1024


class Absent(Exception):
    """The counter cannot be read, or does not move; the text says why."""


def energy_mj(
    context: Context, subjects: Mapping[str, Subject], shared: SharedBuffers
) -> tuple[dict[str, tuple[float, ...]], str]:
    """Millijoules of one call of `a` and of `b`, a block each time they stand in the order A B B A; and why none."""
    graphs: dict[str, tuple[Graph, int]] = {}
    found: dict[str, list[float]] = {"a": [], "b": []}
    try:
        for key in found:
            us = max(rough_us(context.queue, subjects[key], shared), 0.1)
            calls = max(1, int(min(_LAUNCH_US / us, _CALLS_AT_MOST)))
            if shared.own_bytes:
                calls = min(calls, shared.sets)
            elif calls > shared.cycle:
                calls = calls // shared.cycle * shared.cycle
            graphs[key] = batch_graph(context.queue, subjects[key], calls), calls
        for key in _ORDER:
            graph, calls = graphs[key]
            shared.prepare()

            def run(graph: Graph = graph) -> None:
                graph.launch()
                context.queue.wait()

            found[key].append(block_mj(run, lambda: _counter(context), time.monotonic) / calls)
    except Absent as absent:
        return {}, str(absent)
    finally:
        for graph, _ in graphs.values():
            graph.free()
    return {key: tuple(values) for key, values in found.items()}, ""


def block_mj(run: Callable[[], None], counter: Callable[[], int], clock: Callable[[], float]) -> float:
    """Millijoules of one `run`, from a step of the counter to the first step at least 0.3 s later.

    Raises
    ------
    Absent
        The counter does not move.
    """
    first, _ = _next_step(run, counter, clock, 0.0)
    last, runs = _next_step(run, counter, clock, _BLOCK_S)
    return (last - first) / runs


def _next_step(
    run: Callable[[], None], counter: Callable[[], int], clock: Callable[[], float], least_s: float
) -> tuple[int, int]:
    """Run until the counter steps, `least_s` from now or later; its new value, and how many runs that took."""
    start, before = clock(), counter()
    for runs in count(1):
        run()
        now = counter()
        elapsed = clock() - start
        if now != before and elapsed >= least_s:
            return now, runs
        if elapsed < least_s:
            before = now
        if elapsed > least_s + _TICK_AT_MOST_S:
            break
    raise Absent("the card's counter of energy does not move")


def _counter(context: Context) -> int:
    text = context.nvml.read(COUNTER)
    if not text.isdigit():
        raise Absent(f"the card's counter of energy cannot be read: {text}")
    return int(text)
