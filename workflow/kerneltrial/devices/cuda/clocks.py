"""The clocks: how one reading of one subject is taken. All on one stream.

`graph`           a graph of a fixed batch of calls, run once before it is timed; its span over the batch is read.
`events`          one call between two events behind a held queue, less what an empty pair reads there.
`cupti`           the card's own time stamps of each node (in `cupti_clock`).
`events-10-100`   one call between two events on an idle queue: it mostly times the launch. Never evidence.
cold (but cupti)  in `cold_clock`.
"""

from collections.abc import Mapping
from statistics import median
from typing import Protocol

from kerneltrial.devices.cuda.queue import EVENT_RESOLUTION_US, Graph, Queue
from kerneltrial.devices.cuda.subjects import SharedBuffers, Subject

_BATCH_TARGET_US = 500.0  # long beside the 0.5 us resolution of events and the gap before a graph's first node
_BATCH_LIMIT_US = 20_000.0  # a candidate far slower than the baseline shall not take minutes
_NODES_AT_MOST = 256
_OWN_BYTES_AT_MOST = 2**30
_EMPTY_READINGS = 21
_CALIBRATIONS = 3
_THROUGHPUT_READINGS = 5
SHORT_US = 10.0  # below it the gap between calls is a part worth telling


class Meter(Protocol):
    """A warm clock. `calls` are in one reading; `resolution_us` is that of a reading."""

    @property
    def calls(self) -> int: ...

    @property
    def resolution_us(self) -> float: ...

    def read(self, key: str) -> float:
        """Microseconds of one call of this subject."""

    def leave_outputs(self, key: str) -> None:
        """See to it that what lies in the outputs was left by this subject's timed launches."""

    def free(self) -> None: ...


class ColdMeter(Protocol):
    """A clock of single calls on an emptied L2."""

    def read(self, key: str, turn: int) -> float:
        """Microseconds of one call of this subject on input set `turn`, modulo the number of sets."""

    def free(self) -> None: ...


def batch_size(a_us: float, b_us: float, shared: SharedBuffers, nodes: int) -> int:
    """Calls in a graph: the number of input sets times a power of two, the same for all subjects.

    The batch lasts at least 500 us, unless a limit of time, of graph nodes or of memory for inouts forbids it.

    Parameters
    ----------
    a_us, b_us : float
        Rough latencies of baseline and candidate in microseconds.
    shared : SharedBuffers
        Says how many input sets there are, and how much each call needs for itself.
    nodes : int
        Graph nodes of one call of the longest plan.
    """
    limit = min(_BATCH_LIMIT_US / max(b_us, 0.1), _NODES_AT_MOST / nodes)
    if shared.own_bytes:
        limit = min(limit, _OWN_BYTES_AT_MOST / shared.own_bytes)
    calls = shared.sets
    while calls * a_us < _BATCH_TARGET_US and 2 * calls <= limit:
        calls *= 2
    return calls


class GraphClock:
    """See the module's text. One graph a subject."""

    def __init__(self, queue: Queue, subjects: Mapping[str, Subject], shared: SharedBuffers) -> None:
        self._queue, self._shared = queue, shared
        a_us, b_us = (rough_us(queue, subjects[key], shared) for key in ("a", "b"))
        self.calls = batch_size(a_us, b_us, shared, max(subject.nodes for subject in subjects.values()))
        self.resolution_us = EVENT_RESOLUTION_US / self.calls
        if shared.own_bytes:
            shared.grow(self.calls)
            for subject in subjects.values():
                subject.grow(self.calls)
        self._graphs = {key: batch_graph(queue, subject, self.calls) for key, subject in subjects.items()}

    def read(self, key: str) -> float:
        """Microseconds of one call."""
        return _span_us(self._queue, self._graphs[key], self._shared) / self.calls

    def leave_outputs(self, key: str) -> None:
        """One more reading, so that what lies in the outputs was left by this subject's timed launches."""
        self.read(key)

    def free(self) -> None:
        for graph in self._graphs.values():
            graph.free()


def throughput_us(queue: Queue, subjects: Mapping[str, Subject], shared: SharedBuffers) -> dict[str, float]:
    """Microseconds of a call among many in a graph, gaps included, of `a` and `b`.

    The candidate comes last, so that what lies in the outputs is its own.
    """
    graph = GraphClock(queue, {key: subjects[key] for key in ("a", "b")}, shared)
    try:
        return {key: median(graph.read(key) for _ in range(_THROUGHPUT_READINGS)) for key in ("a", "b")}
    finally:
        graph.free()


def rough_us(queue: Queue, subject: Subject, shared: SharedBuffers) -> float:
    """About how long one call takes, in microseconds: the best of a few short graphs."""
    graph = batch_graph(queue, subject, shared.sets)
    try:
        return min(_span_us(queue, graph, shared) for _ in range(_CALIBRATIONS)) / shared.sets
    finally:
        graph.free()


def batch_graph(queue: Queue, subject: Subject, calls: int) -> Graph:
    """A graph of so many calls, one on each input set in turn."""

    def enqueue() -> None:
        for slot in range(calls):
            subject.enqueue(slot)

    return queue.graph(enqueue)


def _span_us(queue: Queue, graph: Graph, shared: SharedBuffers) -> float:
    """One run to warm the caches in the same way for every subject, then one between events."""
    shared.prepare(poison=True)
    graph.launch()
    shared.prepare(poison=False)
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

    def __init__(self, queue: Queue, subjects: Mapping[str, Subject], shared: SharedBuffers) -> None:
        self._queue, self._subjects, self._shared = queue, subjects, shared
        self._turn = 0
        self.empty_us = median(self._pair(None, 0) for _ in range(_EMPTY_READINGS))

    def read(self, key: str) -> float:
        """Microseconds of one call, never under zero."""
        subject = self._subjects[key]
        slot = self._turn % self._shared.sets
        self._turn += 1
        self._shared.prepare(poison=True)
        subject.enqueue(slot)
        self._shared.prepare(poison=False)
        return max(0.0, self._pair(subject, slot) - self.empty_us)

    def leave_outputs(self, key: str) -> None:
        """One more call on each input set, so that what lies in the outputs was left by this subject."""
        call_each_set(self._queue, self._subjects[key], self._shared)

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


def call_each_set(queue: Queue, subject: Subject, shared: SharedBuffers) -> None:
    """One call on each input set, on filled outputs; a fault shows here."""
    shared.prepare(poison=True)
    for slot in range(shared.sets):
        subject.enqueue(slot)
    queue.wait()


def idle_pairs(queue: Queue, subject: Subject, shared: SharedBuffers) -> tuple[float, ...]:
    """10 calls, then 100 between event pairs on an idle queue, as many scripts do it; microseconds, never evidence."""
    shared.prepare(poison=True)
    for turn in range(10):
        subject.enqueue(turn % shared.sets)
    readings = []
    for turn in range(100):
        queue.wait()
        queue.record(queue.start)
        subject.enqueue(turn % shared.sets)
        queue.record(queue.end)
        queue.wait()
        readings.append(queue.elapsed_us())
    return tuple(readings)
