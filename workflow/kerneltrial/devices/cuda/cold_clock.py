"""The cold clock of graphs: single calls on an emptied L2, between event nodes.

A reading is a graph of: read twice the L2's size, and what a case states as warm; event; one call; event. It holds
the call and what lies around it, which is taken off. An empty pair of events tells too little of that: on an H200 the
figure less an empty pair was 1.2 to 1.5 us too large on short kernels (`tests/bench/cold_graph_variants.py`): a kernel
that follows an event node waits longer than the next event does, and what the card needs to launch it was swept out of
the L2 too.

So what lies around a call is read off a kernel that does nothing, in the call's own launch configuration, as a large
grid or much shared memory takes longer to launch. In place of the call it reads r = around + nothing; behind another of
its kind, in long warm graphs, it takes w = gap + nothing. A call's reading less r - w is its span and one gap between
nodes, which is what the warm clock of graphs reads too.

In the cold graph itself, two empty kernels of two modules gave 1.1 to 1.3 us for w, which is 0.5 warm (H200, driver
580.159, 2026-12-01): the second waits for its own code from memory; the first waits behind the event anyway. Calls then
read 0.6 to 0.8 us too much.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median

from kerneltrial.devices.cuda import ceilings_ptx
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.launches import BoundLaunch, Module
from kerneltrial.devices.cuda.queue import Graph
from kerneltrial.devices.cuda.residency import Residency
from kerneltrial.devices.cuda.subjects import SharedBuffers, Subject
from kerneltrial.inputs.calls import ResolvedLaunch

_READINGS = 21
_NODES = 32  # empty kernels in a graph, and twice as many
_LONG_US = 500.0  # that such a graph lasts, about, where they take long
_MOST_BEYOND_US = 3.0  # beyond an empty pair; more than that is no launch but a disturbance


class ColdClock:
    """One graph a subject and input set; `around_us` is taken off its readings, `told` says what it was made from."""

    def __init__(
        self, context: Context, subjects: Mapping[str, Subject], shared: SharedBuffers, warm: Sequence[str] = ()
    ) -> None:
        self._queue, self._subjects, self._shared = context.queue, subjects, shared
        self._before = Residency(context.sweep, shared, warm)  # now: no memory while a graph is captured
        self.around_us, self.told = self._calibrated()
        self._graphs = {
            key: [self._graph(index, _call_in(subject, index)) for index in range(shared.sets)]
            for key, subject in subjects.items()
        }

    def read(self, key: str, turn: int) -> float:
        """Microseconds of one call, never under zero. What is filled before it is out of the L2 after the sweep."""
        self._shared.prepare()
        self._subjects[key].renew()
        self._graphs[key][turn % self._shared.sets].launch()
        self._queue.wait()
        return max(0.0, self._queue.elapsed_us() - self.around_us[key])

    def free(self) -> None:
        graphs: Sequence[Graph] = [graph for own in self._graphs.values() for graph in own]
        for graph in graphs:
            graph.free()

    def _calibrated(self) -> tuple[dict[str, float], dict[str, str]]:
        module = Module(ceilings_ptx.EMPTY.encode() + b"\0")
        found: dict[str, float] = {}
        told: dict[str, str] = {}
        known: dict[ResolvedLaunch, tuple[float, dict[str, str]]] = {}
        try:
            pair = self._calibration(lambda: None)
            for key, subject in self._subjects.items():
                shape = nothing_like(subject.first)
                if shape not in known:
                    nothing = BoundLaunch(module, shape, {}, self._queue.stream)
                    alone = self._calibration(nothing.enqueue)
                    known[shape] = around(pair, alone, self._behind_another(nothing, alone))
                found[key], why = known[shape]
                told |= {f"{name}_{key}": value for name, value in why.items()}
        finally:
            module.unload()
        return found, told

    def _calibration(self, in_place: Callable[[], None]) -> float:
        """The median reading of this in place of a call."""
        graph = self._graph(0, in_place)
        readings = []
        for _ in range(_READINGS):
            graph.launch()
            self._queue.wait()
            readings.append(self._queue.elapsed_us())
        graph.free()
        return median(readings)

    def _behind_another(self, nothing: BoundLaunch, alone_us: float) -> float:
        """Microseconds that one more of these kernels adds to a warm graph of them, by graphs of n and of 2 n."""
        count = max(2, min(_NODES, int(_LONG_US / max(alone_us, 1.0))))

        spans = []
        for calls in (count, 2 * count):
            graph = self._queue.graph(partial(_repeatedly, nothing, calls))
            spans.append(median(self._span_us(graph) for _ in range(_READINGS)))
            graph.free()
        return (spans[1] - spans[0]) / count

    def _span_us(self, graph: Graph) -> float:
        queue = self._queue
        with queue.held():
            graph.launch()
            queue.record(queue.start)
            graph.launch()
            queue.record(queue.end)
        queue.wait()
        return queue.elapsed_us()

    def _graph(self, index: int, call: Callable[[], None]) -> Graph:
        queue = self._queue

        def enqueue() -> None:
            self._before.enqueue(index)
            queue.record_node(queue.start)
            call()
            queue.record_node(queue.end)

        return queue.graph(enqueue)


def around(pair_us: float, one_us: float, more_us: float) -> tuple[float, dict[str, str]]:
    """What lies around a call in a cold reading, from readings of an empty pair and of an empty kernel.

    `more_us` is what one more empty kernel takes behind another. The empty pair is a lower bound. Where the kernels
    give less than it, or far more, they were disturbed, and the pair is taken: the cold figure is then too large rather
    than too small.
    """
    told = {name: repr(us) for name, us in zip(_NAMES, (pair_us, one_us, more_us), strict=True)}
    found = one_us - more_us
    if more_us > 0 and pair_us <= found <= pair_us + _MOST_BEYOND_US:
        return found, told | {"cold_around": "an empty kernel"}
    return pair_us, told | {"cold_around": "an empty pair, since empty kernels gave no sensible figure"}


_NAMES = ("cold_empty_pair_us", "cold_one_empty_kernel_us", "cold_one_more_empty_kernel_us")


def nothing_like(launch: ResolvedLaunch | None) -> ResolvedLaunch:
    """The launch of a kernel that does nothing, in the configuration of `launch`; of one thread where it is not known.

    Clusters and cooperation are left out, which the empty kernel was not made for.
    """
    return ResolvedLaunch(
        entry="main",
        grid=(1, 1, 1) if launch is None else launch.grid,
        block=(1, 1, 1) if launch is None else launch.block,
        cluster=(1, 1, 1),
        cooperative=False,
        shared_bytes=0 if launch is None else launch.shared_bytes,
        parameters=(),
    )


def _repeatedly(launch: BoundLaunch, calls: int) -> None:
    for _ in range(calls):
        launch.enqueue()


def _call_in(subject: Subject, index: int) -> Callable[[], None]:
    return lambda: subject.enqueue(index)
