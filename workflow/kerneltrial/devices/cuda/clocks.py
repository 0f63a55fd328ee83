"""The clocks: how one reading of one subject is taken. All on one stream, all with CUDA events.

`graph`           a graph of a fixed batch of calls, run once before it is timed; its span over the batch is read.
`events`          one call between two events behind a held queue, less what an empty pair reads there.
`events-10-100`   one call between two events on an idle queue: it mostly times the launch. Never evidence.
cold (all clocks) a graph of: read twice the L2's size; event; one call; event. Less what an empty pair reads there.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.queue import EVENT_RESOLUTION_US, Graph, Queue
from kerneltrial.devices.cuda.subjects import Subject

_BATCH_TARGET_US = 400.0  # long beside the 0.5 us resolution of events and the gap before a graph's first node
_BATCH_LIMIT_US = 20_000.0  # a candidate far slower than the baseline shall not take minutes
_NODES_AT_MOST = 256
_OWN_BYTES_AT_MOST = 2**30
_EMPTY_READINGS = 21
_CALIBRATIONS = 3


def batch_size(a_us: float, b_us: float, sets: int, subjects: Iterable[Subject]) -> int:
    """Calls in a graph: the number of input sets times a power of two, the same for all subjects.

    Parameters
    ----------
    a_us, b_us : float
        Rough latencies of baseline and candidate in microseconds.
    sets : int
        Number of input sets.
    """
    wanted = min(_BATCH_TARGET_US / max(a_us, 0.1), _BATCH_LIMIT_US / max(b_us, 0.1))
    for subject in subjects:
        wanted = min(wanted, _NODES_AT_MOST / subject.nodes)
        if subject.own_bytes:
            wanted = min(wanted, _OWN_BYTES_AT_MOST / subject.own_bytes)
    times = 1
    while 2 * times * sets <= wanted:
        times *= 2
    return times * sets


class GraphClock:
    """See the module's text. One graph a subject."""

    name = "graph"

    def __init__(self, queue: Queue, subjects: Mapping[str, Subject], sets: int) -> None:
        self._queue = queue
        a_us, b_us = (self._rough_us(subjects[key], sets) for key in ("a", "b"))
        self.calls = batch_size(a_us, b_us, sets, subjects.values())
        self.resolution_us = EVENT_RESOLUTION_US / self.calls
        self._subjects = subjects
        for subject in subjects.values():
            if subject.own_bytes:
                subject.grow(self.calls)
        self._graphs = {key: self._graph(subject, self.calls) for key, subject in subjects.items()}

    def read(self, key: str) -> float:
        """Microseconds of one call."""
        return self._span_us(self._subjects[key], self._graphs[key]) / self.calls

    def free(self) -> None:
        for graph in self._graphs.values():
            graph.free()

    def _graph(self, subject: Subject, calls: int) -> Graph:
        def enqueue() -> None:
            for slot in range(calls):
                subject.enqueue(slot)

        return self._queue.graph(enqueue)

    def _rough_us(self, subject: Subject, sets: int) -> float:
        graph = self._graph(subject, sets)
        try:
            return min(self._span_us(subject, graph) for _ in range(_CALIBRATIONS)) / sets
        finally:
            graph.free()

    def _span_us(self, subject: Subject, graph: Graph) -> float:
        """One run to warm the caches in the same way for every subject, then one between events."""
        queue = self._queue
        subject.prepare(poison=True)
        graph.launch()
        subject.prepare(poison=False)
        with queue.held():
            queue.record(queue.start)
            graph.launch()
            queue.record(queue.end)
        queue.wait()
        return queue.elapsed_us()


class EventClock:
    """Single calls between events; see the module's text."""

    calls = 1
    resolution_us = EVENT_RESOLUTION_US

    def __init__(self, queue: Queue, subjects: Mapping[str, Subject], sets: int) -> None:
        self._queue, self._subjects, self._sets = queue, subjects, sets
        self._turn = 0
        self.empty_us = median(self._pair(None, 0) for _ in range(_EMPTY_READINGS))

    def read(self, key: str) -> float:
        """Microseconds of one call, never under zero."""
        subject = self._subjects[key]
        slot = self._turn % self._sets
        self._turn += 1
        subject.prepare(poison=True)
        subject.enqueue(slot)
        subject.prepare(poison=False)
        return max(0.0, self._pair(subject, slot) - self.empty_us)

    def free(self) -> None:
        """Nothing is kept on the card."""

    def _pair(self, subject: Subject | None, slot: int) -> float:
        queue = self._queue
        with queue.held():
            queue.record(queue.start)
            if subject is not None:
                subject.enqueue(slot)
            queue.record(queue.end)
        queue.wait()
        return queue.elapsed_us()


def idle_pairs(queue: Queue, subject: Subject, sets: int) -> tuple[float, ...]:
    """10 calls, then 100 between event pairs on an idle queue, as many scripts do it; microseconds, never evidence."""
    subject.prepare(poison=True)
    for turn in range(10):
        subject.enqueue(turn % sets)
    readings = []
    for turn in range(100):
        queue.wait()
        queue.record(queue.start)
        subject.enqueue(turn % sets)
        queue.record(queue.end)
        queue.wait()
        readings.append(queue.elapsed_us())
    return tuple(readings)


class ColdClock:
    """Single calls on an emptied L2: one graph a subject and input set."""

    def __init__(self, context: Context, subjects: Mapping[str, Subject], sets: int) -> None:
        self._context, self._subjects, self._sets = context, subjects, sets
        self._empty = self._graph(None, 0)
        readings = []
        for _ in range(_EMPTY_READINGS):
            self._empty.launch()
            context.queue.wait()
            readings.append(context.queue.elapsed_us())
        self.empty_us = median(readings)
        self._graphs = {key: [self._graph(subject, slot) for slot in range(sets)] for key, subject in subjects.items()}

    def read(self, key: str, turn: int) -> float:
        """Microseconds of one call, never under zero."""
        queue = self._context.queue
        self._subjects[key].prepare(poison=False)
        self._graphs[key][turn % self._sets].launch()
        queue.wait()
        return max(0.0, queue.elapsed_us() - self.empty_us)

    def free(self) -> None:
        graphs: Sequence[Graph] = [self._empty, *(graph for own in self._graphs.values() for graph in own)]
        for graph in graphs:
            graph.free()

    def _graph(self, subject: Subject | None, slot: int) -> Graph:
        queue = self._context.queue

        def enqueue() -> None:
            self._context.sweep.enqueue()
            queue.record_node(queue.start)
            if subject is not None:
                subject.enqueue(slot)
            queue.record_node(queue.end)

        return queue.graph(enqueue)
