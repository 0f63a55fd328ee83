"""An independent witness of how long kernels take: plain launches, and CUPTI's own records or a profiler around them.

    python tests/bench/fidelity_witness.py --cupti      prints a JSON object: name -> way -> figures
    ncu ... python tests/bench/fidelity_witness.py      launches each plan a few times and prints nothing

Nothing of the trial's clocks is used: kernels are launched one by one on a stream (`stream`), or the same launches are
captured into a graph (`graph`), and records are read here: a plan of two launches took longer on a stream. A cold call
follows a sweep of the L2, all of them put on the stream at once; `alone` are cold calls of which each is waited for, as
a trial's are (`cold_trains.py` looks at the difference). Where buffers happen to lie in memory makes a difference, so
each plan is seen on a few sets of buffers, by a profiler too: figures are the medians over these, warm and cold, in
microseconds, and how far they lie apart. A plan of more than 500 us is called fewer times.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from fidelity_kernels import Subject, binaries, subjects

from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.driver import call
from kerneltrial.devices.cuda.launches import BoundLaunch, Module
from kerneltrial.devices.cuda.memory import Guarded, given_bytes, settle
from kerneltrial.devices.cuda.probe import probe
from kerneltrial.inputs.calls import Pointer, ResolvedLaunch, Scalar

WARM_UP, TIMED, TIMED_LONG, PLACEMENTS = 20, 60, 15, 3
LONG_US = 500.0
SETS = 2  # as in fidelity.py
BEFORE, PROFILED = SETS * (SETS + 1), 4  # calls under a profiler: each pairing of inputs and outputs once, then these


class Records:
    """Start and end of kernels, as CUPTI's buffers bring them."""

    def __init__(self) -> None:
        from cupti import cupti

        self._cupti = cupti
        self._found: list[tuple[int, int]] = []
        cupti.activity_register_callbacks(lambda: (4 << 20, 0), self._take)
        cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)

    def _take(self, activities: list[Any]) -> None:
        self._found += [(a.start, a.end) for a in activities if a.kind == self._cupti.ActivityKind.CONCURRENT_KERNEL]

    def taken(self) -> list[tuple[int, int]]:
        self._cupti.activity_flush_all(1)
        found, self._found = sorted(self._found), []
        return found


class Unequal(Exception):
    """CUPTI gave more or fewer records than were launched."""


class Plan:
    """A plan's launches on fresh buffers.

    Calls rotate through `SETS` sets of inputs and one slot of outputs more, as a trial's do: arrays that fit the L2
    once and not several times are read from memory then, which is no matter of clocks.
    """

    def __init__(self, subject: Subject, module: Module, stream: Any) -> None:
        buffers = subject.call.buffers
        inputs = [{b.name: Guarded(b, 0) for b in buffers if b.role == "input"} for _ in range(SETS)]
        slots = [{b.name: Guarded(b, 0) for b in buffers if b.role == "output"} for _ in range(SETS + 1)]
        scratch = {b.name: Guarded(b, 0) for b in buffers if b.role == "scratch"}
        for seed, own in enumerate(inputs):
            for name, value in subject.values(seed).items():
                own[name].upload(given_bytes(own[name].buffer, {name: value}))
        self._buffers = [guarded for own in (*inputs, *slots, scratch) for guarded in own.values()]
        self._calls = []
        for turn in range(SETS * (SETS + 1)):
            placed = inputs[turn % SETS] | slots[turn % (SETS + 1)] | scratch
            addresses = {name: guarded.address for name, guarded in placed.items()}
            self._calls.append([BoundLaunch(module, one, addresses, stream) for one in subject.call.launches])
        self.each = len(subject.call.launches)
        self._turn = 0

    def run(self) -> None:
        for one in self._calls[self._turn % len(self._calls)]:
            one.enqueue()
        self._turn += 1

    def free(self) -> None:
        for guarded in self._buffers:
            guarded.free()


def sweeper(module: Module, context: Context) -> BoundLaunch:
    """Reads twice the L2's size."""
    nbytes = 2 * int(context.device.fingerprint["l2_bytes"])
    memory = int(call("cuMemAlloc", nbytes + 16))
    call("cuMemsetD8", memory, 0, nbytes + 16)
    settle()
    launch = ResolvedLaunch(
        entry="read_all",
        grid=(1056, 1, 1),
        block=(256, 1, 1),
        cluster=(1, 1, 1),
        cooperative=False,
        shared_bytes=0,
        parameters=(Pointer(buffer="x"), Pointer(buffer="y"), Scalar(bytes=4, bits=nbytes // 16)),
    )
    return BoundLaunch(module, launch, {"x": memory, "y": memory + nbytes}, context.queue.stream)


def span_us(records: list[tuple[int, int]]) -> float:
    return (max(end for _, end in records) - min(start for start, _ in records)) / 1000


class Calls:
    """Calls of a plan as many as are timed, and the median span that records tell of them."""

    def __init__(self, plan: Plan, sweep: BoundLaunch, records: Records, queue: Any) -> None:
        self._plan, self._sweep, self._records, self._queue = plan, sweep, records, queue
        for _ in range(WARM_UP):
            plan.run()
        queue.wait()
        self._count = TIMED_LONG if span_us(records.taken()[-plan.each :]) > LONG_US else TIMED

    def warm(self) -> None:
        for _ in range(self._count):
            self._plan.run()

    def cold(self) -> None:
        for _ in range(self._count):
            self._sweep.enqueue()
            self._plan.run()

    def alone(self) -> None:
        """Cold calls, each waited for."""
        for _ in range(self._count):
            with self._queue.held():
                self._sweep.enqueue()
                self._plan.run()
            self._queue.wait()

    def together(self, work: Callable[[], None]) -> Callable[[], None]:
        """So that a plan's launches follow each other without waiting for Python."""

        def held() -> None:
            with self._queue.held():
                work()

        return held

    def span(self, work: Callable[[], None], before: int) -> float:
        """The median span of calls, each with so many kernels before it that are none of its own."""
        self._queue.wait()
        self._records.taken()
        work()
        self._queue.wait()
        found, own = self._records.taken(), before + self._plan.each
        if len(found) != self._count * own:
            raise Unequal(f"{len(found)} records for {self._count} calls of {own} launches")
        return median(span_us(found[i + before : i + own]) for i in range(0, len(found), own))


def seen(plan: Plan, sweep: BoundLaunch, records: Records, context: Context) -> dict[str, tuple[float, float]]:
    """Median warm and cold span of the plan in microseconds, launched on a stream and in a graph."""
    calls = Calls(plan, sweep, records, context.queue)
    told = {"stream": (calls.span(calls.together(calls.warm), 0), calls.span(calls.together(calls.cold), 1))}
    graphs = [context.queue.graph(work) for work in (calls.warm, calls.cold)]
    graphs[0].launch()
    try:
        warm, cold = (calls.together(graph.launch) for graph in graphs)
        told["graph"] = (calls.span(warm, 0), calls.span(cold, 1))
    except Unequal as unequal:
        print(f"no witness in a graph: {unequal}", file=sys.stderr)
    for graph in graphs:
        graph.free()
    try:
        told["alone"] = (told["stream"][0], calls.span(calls.alone, 1))
    except Unequal as unequal:
        print(f"no witness of single calls: {unequal}", file=sys.stderr)
    return told


def over_placements(plans: Sequence[dict[str, tuple[float, float]]]) -> dict[str, list[float]]:
    """By the way of launching: medians warm and cold over the same plan in several places, and their ranges."""
    found = {}
    for way in set.intersection(*map(set, plans)):
        columns = list(zip(*(one[way] for one in plans), strict=True))
        found[way] = [median(column) for column in columns] + [max(column) - min(column) for column in columns]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cupti", action="store_true")
    arguments = parser.parse_args()
    context = Context(probe().arch)
    modules = {name: Module(binary.cubin) for name, binary in binaries(context.device.arch).items()}
    records = Records() if arguments.cupti else None
    sweep = sweeper(modules["streams.cu"], context)
    told = {}
    for subject in subjects():
        stream, module = context.queue.stream, modules[subject.source]
        plans = [Plan(subject, module, stream) for _ in range(PLACEMENTS)]
        if records is None:
            for plan in plans:
                for _ in range(BEFORE + PROFILED):
                    plan.run()
            context.queue.wait()
        else:
            told[subject.name] = over_placements([seen(plan, sweep, records, context) for plan in plans])
        for plan in plans:
            plan.free()
    if records is not None:
        json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
