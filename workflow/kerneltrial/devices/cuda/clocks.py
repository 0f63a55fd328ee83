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
    """Calls in a graph, the same for all subjects: whole cycles of `SharedBuffers`, a power of two of them.

    The batch lasts at least 500 us, unless a limit of time, of graph nodes or of memory for inouts forbids it. Where
    not even one cycle is within the limits, each input set is called a power of two times.

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
    calls = shared.cycle if shared.cycle <= limit else shared.sets
    while calls * a_us < _BATCH_TARGET_US and 2 * calls <= limit:
        calls *= 2
    return calls


class GraphClock:
    """See the module's text. One graph a subject."""

    def __init__(self, queue: Queue, subjects: Mapping[str, Subject], shared: SharedBuffers) -> None:
        a_us, b_us = (rough_us(queue, subjects[key], shared) for key in ("a", "b"))
        self.calls = batch_size(a_us, b_us, shared, max(subject.nodes for subject in subjects.values()))
        self.resolution_us = EVENT_RESOLUTION_US / self.calls
        if shared.own_bytes:
            shared.grow(self.calls)
            for subject in subjects.values():
                subject.grow(self.calls)
        self._batches = {key: Batch(queue, subject, shared, self.calls) for key, subject in subjects.items()}

    def read(self, key: str) -> float:
        """Microseconds of one call."""
        return self._batches[key].span_us() / self.calls

    def leave_outputs(self, key: str) -> None:
        """One more reading, so that what lies in the outputs was left by this subject's timed launches."""
        self.read(key)

    def free(self) -> None:
        for batch in self._batches.values():
            batch.free()


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
    batch = Batch(queue, subject, shared, shared.sets)
    try:
        return min(batch.span_us() for _ in range(_CALIBRATIONS)) / shared.sets
    finally:
        batch.free()


def batch_graph(queue: Queue, subject: Subject, calls: int) -> Graph:
    """A graph of so many calls, one on each input set in turn."""

    def enqueue() -> None:
        for index in range(calls):
            subject.enqueue(index)

    return queue.graph(enqueue)


class Batch:
    """A graph of so many calls of one subject, and how it is read."""

    def __init__(self, queue: Queue, subject: Subject, shared: SharedBuffers, calls: int) -> None:
        self._queue, self._subject, self._shared, self._calls = queue, subject, shared, calls
        self._graph = batch_graph(queue, subject, calls)

    def span_us(self) -> float:
        """One run to warm the caches in the same way for every subject, then one between events."""
        queue, shared = self._queue, self._shared
        shared.prepare()
        self._graph.launch()
        shared.again(self._calls)
        self._subject.renew()
        with queue.held():
            queue.record(queue.start)
            self._graph.launch()
            queue.record(queue.end)
        queue.wait()
        shared.ran(self._calls)
        return queue.elapsed_us()

    def free(self) -> None:
        self._graph.free()


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
        index = self._turn % self._shared.cycle
        self._turn += 1
        self._shared.prepare()
        subject.enqueue(index)
        self._shared.again(1)
        subject.renew()
        return max(0.0, self._pair(subject, index) - self.empty_us)

    def leave_outputs(self, key: str) -> None:
        """One more call on each input set, so that what lies in the outputs was left by this subject."""
        call_each_set(self._queue, self._subjects[key], self._shared)

    def free(self) -> None:
        """Nothing is kept on the card."""

    def _pair(self, subject: Subject | None, index: int) -> float:
        queue = self._queue
        with queue.held():
            queue.record(queue.start)
            if subject is not None:
                subject.enqueue(index)
            queue.record(queue.end)
        queue.wait()
        return queue.elapsed_us()


def call_each_set(queue: Queue, subject: Subject, shared: SharedBuffers) -> None:
    """One call on each input set, on filled outputs; a fault shows here."""
    shared.prepare()
    subject.renew()
    for index in range(shared.sets):
        subject.enqueue(index)
    queue.wait()
    shared.ran(shared.sets)


def idle_pairs(queue: Queue, subject: Subject, shared: SharedBuffers) -> tuple[float, ...]:
    """10 calls, then 100 between event pairs on an idle queue, as many scripts do it; microseconds, never evidence."""
    shared.prepare()
    for turn in range(10):
        subject.enqueue(turn)
    readings = []
    for turn in range(100):
        queue.wait()
        queue.record(queue.start)
        subject.enqueue(10 + turn)
        queue.record(queue.end)
        queue.wait()
        readings.append(queue.elapsed_us())
    return tuple(readings)
