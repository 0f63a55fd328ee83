"""The `cupti` clock: spans of calls by the card's own time stamps, and whether it can be believed here."""

from collections.abc import Mapping, Sequence
from math import fsum
from statistics import median

from kerneltrial.devices.cuda.activity import Absent, Activity, Recorder, recorder, resolution_us, spans_us, window_us
from kerneltrial.devices.cuda.clocks import ColdMeter, GraphClock, call_each_set
from kerneltrial.devices.cuda.cold_clock import ColdClock
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.queue import EVENT_RESOLUTION_US
from kerneltrial.devices.cuda.residency import Residency
from kerneltrial.devices.cuda.subjects import SharedBuffers, Subject

_NODES_AT_MOST = 128  # launches that are put on the stream one by one
_CALLS = 12  # of a batch, where a cycle is shorter
_CHECKS = 5
_COLD_CHECKS = 9  # single calls, of which one moved by 1 to 2 % from the next on an H200
_AGREE = 0.02
_AGREE_US = 0.1
_GAP_US = 1.0  # between two nodes of a graph; 0.1 to 0.5 us were seen on an H200
_EVENTS_US = 10.0  # what events around a batch may add


class CuptiClock:
    """Calls behind a held queue, a batch to warm the caches and at once the batch that is timed; the mean of its spans.

    The mean, not the median: time stamps come in steps (32 ns on an H200), which a mean over a batch evens out. A batch
    is one cycle of `SharedBuffers`, or a few where that is short, and never more than `batch`, which is a graph's:
    spans, unlike a graph's time, need no long batch, and the host takes longer to read a record than the card to write
    it.
    """

    def __init__(self, context: Context, subjects: Mapping[str, Subject], shared: SharedBuffers, batch: int) -> None:
        self._queue, self._subjects, self._shared = context.queue, subjects, shared
        nodes = max(subject.nodes for subject in subjects.values())
        most = min(batch, _NODES_AT_MOST // nodes // 2)
        whole = shared.cycle if shared.cycle <= most else shared.sets
        self.calls = whole * max(1, min(_CALLS, most) // whole)
        if shared.own_bytes:
            shared.grow(self.calls)
            for subject in subjects.values():
                subject.grow(self.calls)
        self.window_us = self.events_us = 0.0  # of the last batch
        self._recorder = recorder()
        self._recorder.start()
        try:
            self._names = {key: self._names_of(key) for key in subjects}
            self.resolution_us = resolution_us([a for key in subjects for a in self._batch(key)])
        except BaseException:  # what still records would slow the other clocks
            self._recorder.stop()
            raise

    def read(self, key: str) -> float:
        """Microseconds of one call."""
        spans = spans_us(self._batch(key), self.calls)
        return fsum(spans) / len(spans)

    def leave_outputs(self, key: str) -> None:
        """One more reading, so that what lies in the outputs was left by this subject's timed launches."""
        self.read(key)

    def free(self) -> None:
        self._recorder.stop()

    def _batch(self, key: str) -> tuple[Activity, ...]:
        """The records of the timed batch: the last of a reading, which has as many kernels before as in it.

        How many fills are recorded before them was seen to differ by one from reading to reading (H200, CUPTI 13.0).
        """
        found, names = self._recorded(key), self._names[key]
        own = found[-len(names) :]
        kernels, expected = sum(bool(one.name) for one in found), 2 * sum(map(bool, names))
        if kernels != expected or tuple(one.name for one in own) != names:
            raise Absent(f"CUPTI gave {kernels} records of kernels where {expected} were launched, or in another order")
        self.events_us = self._queue.elapsed_us()
        self.window_us = window_us(own)
        return own

    def _recorded(self, key: str) -> tuple[Activity, ...]:
        """All records of one reading."""
        queue, subject = self._queue, self._subjects[key]
        with queue.held():
            self._shared.prepare()
            for index in range(self.calls):
                subject.enqueue(index)
            self._shared.again(self.calls)
            subject.renew()
            queue.record(queue.start)
            for index in range(self.calls):
                subject.enqueue(index)
            queue.record(queue.end)
        queue.wait()
        self._shared.ran(self.calls)
        return self._recorder.drain()

    def _names_of(self, key: str) -> tuple[str, ...]:
        """The kernels and memsets of a batch of this subject, told from what is filled before it."""
        self._shared.prepare()
        self._subjects[key].renew()
        self._queue.wait()
        self._recorder.drain()
        for index in range(self.calls):
            self._subjects[key].enqueue(index)
        self._queue.wait()
        found = self._recorder.drain()
        spans_us(found, self.calls)  # raises where records are missing
        return tuple(one.name for one in found)


class CuptiColdClock:
    """Single calls on an emptied L2, between the sweep's end and the last end; the sweep's own record is left out."""

    def __init__(
        self, context: Context, subjects: Mapping[str, Subject], shared: SharedBuffers, warm: Sequence[str] = ()
    ) -> None:
        self._queue, self._subjects, self._shared = context.queue, subjects, shared
        self._before = Residency(context.sweep, shared, warm)
        self._recorder: Recorder = recorder()
        self._recorder.start()

    def read(self, key: str, turn: int) -> float:
        """Microseconds of one call. What is filled before it is out of the L2 after the sweep."""
        queue, index = self._queue, turn % self._shared.sets
        with queue.held():
            self._shared.prepare()
            self._subjects[key].renew()
            self._before.enqueue(index)
            self._subjects[key].enqueue(index)
        queue.wait()
        found = self._recorder.drain()
        sweeps = [place for place, one in enumerate(found) if one.name == "sweep"]
        if len(sweeps) != self._before.reads:
            raise Absent(f"CUPTI recorded {len(sweeps)} sweeps of the cache, not {self._before.reads}")
        return spans_us(found[sweeps[-1] + 1 :], 1)[0]

    def free(self) -> None:
        """The recorder belongs to the warm clock."""


def choose(context: Context, subjects: Mapping[str, Subject], shared: SharedBuffers) -> tuple[str, str]:
    """What `auto` means, and why: `cupti` where its records agree with graphs, warm and cold, and events, else `graph`.

    One clock reads both, so that where it fails at one of them the other clock is taken for both.
    """
    graph = GraphClock(context.queue, subjects, shared)
    try:
        by_graph = {key: median(graph.read(key) for _ in range(_CHECKS)) for key in subjects}
    finally:
        graph.free()
    try:
        by_cupti, why = _warm(context, subjects, shared, graph.calls)
        why = why or disagreement(by_cupti, by_graph)
        if why:
            return "graph", why
        cold = _cold(context, subjects, shared)
        why = disagreement(*cold, "a cold call of ", EVENT_RESOLUTION_US)
    except Absent as absent:
        return "graph", str(absent)
    finally:
        call_each_set(context.queue, subjects["b"], shared)
    if why:
        return "graph", why
    return "cupti", f"cupti and graph agree, us a call: {_beside(by_cupti, by_graph)}; cold: {_beside(*cold)}"


def _warm(
    context: Context, subjects: Mapping[str, Subject], shared: SharedBuffers, batch: int
) -> tuple[dict[str, float], str]:
    """CUPTI's warm readings, and how its base of time differs from that of events, if it does."""
    cupti = CuptiClock(context, subjects, shared, batch)
    try:
        found = {key: median(cupti.read(key) for _ in range(_CHECKS)) for key in subjects}
        return found, wrong_base(cupti.window_us, cupti.events_us)
    finally:
        cupti.free()


def _cold(
    context: Context, subjects: Mapping[str, Subject], shared: SharedBuffers
) -> tuple[dict[str, float], dict[str, float]]:
    """Cold readings, by CUPTI and by graphs; these while nothing records, which was seen to slow large kernels."""
    graph = ColdClock(context, subjects, shared)
    try:
        by_graph = _cold_medians(graph, subjects)
    finally:
        graph.free()
    try:
        return _cold_medians(CuptiColdClock(context, subjects, shared), subjects), by_graph
    finally:
        recorder().stop()


def _cold_medians(clock: ColdMeter, subjects: Mapping[str, Subject]) -> dict[str, float]:
    return {key: median(clock.read(key, turn) for turn in range(_COLD_CHECKS)) for key in subjects}


def _beside(cupti_us: Mapping[str, float], graph_us: Mapping[str, float]) -> str:
    return ", ".join(f"{key} {cupti_us[key]:.3f} | {graph_us[key]:.3f}" for key in graph_us)


def disagreement(
    cupti_us: Mapping[str, float], graph_us: Mapping[str, float], what: str = "", step_us: float = 0.0
) -> str:
    """How two clocks differ by more than they may, or empty; a graph's reading is known to `step_us`.

    In a graph calls follow each other at once, so its time of a call is the span and the gap before the next. A longer
    span would mean that recording slows the call, or that its launches lie further apart on a stream than in a graph.
    """
    for key, graph in graph_us.items():
        cupti = cupti_us[key]
        seen = f"cupti reads {cupti:.3f} us for {what}{key} where a graph needs {graph:.3f} us a call"
        if cupti > graph * (1 + _AGREE) + _AGREE_US + step_us:
            return f"{seen}: recording slows it, or launching on a stream does"
        if cupti < graph * (1 - _AGREE) - _GAP_US - step_us:
            return f"{seen}: something is missing"
    return ""


def wrong_base(window_us: float, events_us: float) -> str:
    """Whether a batch by CUPTI's time stamps is not as long as by events around it, or empty."""
    if events_us * (1 - _AGREE) - _EVENTS_US <= window_us <= events_us * (1 + _AGREE) + _EVENTS_US:
        return ""
    return f"a batch lasts {window_us:.1f} us by cupti and {events_us:.1f} us by events around it"
