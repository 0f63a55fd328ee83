"""Why does a cold reading by graphs hold more than the call? Variants of the graph against CUPTI. Needs a card; ~10 s.

    PYTHONPATH=workflow python tests/bench/cold_graph_variants.py [--readings 41]

A cold reading of the trial is raw - l1 + w: a graph (sweep, event, call, event), the same with an empty kernel of the
call's own shape in place of the call, and what one more empty kernel takes in a long warm graph. It should be the span
of the call and one gap between nodes; CUPTI's span has no gap. With two cold empty kernels in place of w calls read 0.6
to 0.8 us too much.

First, with no recorder in the process, microseconds by graphs:
  now      raw - l1 + w, the trial's clock
  two      raw - (2 l1 - l2), l2: two empty kernels of two modules in the cold graph
  same     the same, both of one module: if it is `now` and not `two`, cold code is what made `two` read too much
  spaced   as now, some empty kernels between sweep and event: if it differs, the sweep still drains at the call
  params   as now, empty kernels with eight pointers: if it differs, empty kernels lack parameters to fetch
  step     the least distance between two different readings: the resolution of events within graphs
Then with CUPTI:
  cupti    the trial's cold CUPTI clock, single launches: what is asked for, within 8 % or 0.5 us
  known    raw - l1 + `empty`: no gap left, if CUPTI's span of the empty kernel is right
  empty, gap, call   CUPTI's spans of the first empty kernel, of the gap to the second, and of the call, in such graphs
"""

import argparse
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from fidelity_kernels import binaries, subjects

from kerneltrial.devices.cuda import ceilings_ptx, cold_clock
from kerneltrial.devices.cuda.activity import Recorder, recorder
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.cupti_clock import CuptiColdClock
from kerneltrial.devices.cuda.device import load_module, open_cuda
from kerneltrial.devices.cuda.launches import BoundLaunch, Module
from kerneltrial.devices.cuda.probe import probe
from kerneltrial.devices.cuda.queue import Graph
from kerneltrial.devices.cuda.subjects import PlanSubject, SharedBuffers
from kerneltrial.inputs.calls import Pointer, ResolvedLaunch

SETS, SPACERS, LONG = 3, 12, 64
EIGHT = ", ".join(f".param .u64 p{i}" for i in range(8))
WITH_PARAMETERS = ceilings_ptx.EMPTY.replace("main()", f"main({EIGHT})")
GRAPHS = ("now", "two", "same", "spaced", "params", "step")
RECORDED = ("cupti", "known", "empty", "gap", "call")
Part = Callable[[], None]


@dataclass(frozen=True)
class Timed:
    """A plan on the card, and how often each graph is read."""

    context: Context
    shared: SharedBuffers
    plan: PlanSubject
    readings: int


class Empty:
    """Kernels that do nothing: two of modules of their own, one that takes parameters, and spacers."""

    def __init__(self, context: Context) -> None:
        plain, with_parameters = (text.encode() + b"\0" for text in (ceilings_ptx.EMPTY, WITH_PARAMETERS))
        self._context = context
        self._plain = [Module(plain) for _ in range(2)]
        self._parameters = Module(with_parameters)
        self._spacer = BoundLaunch(Module(plain), cold_clock.nothing_like(None), {}, context.queue.stream)

    def plain(self, number: int, like: ResolvedLaunch) -> Part:
        """An empty kernel of this module in the configuration of `like`."""
        return BoundLaunch(self._plain[number], cold_clock.nothing_like(like), {}, self._context.queue.stream).enqueue

    def with_parameters(self, like: ResolvedLaunch) -> Part:
        """The same with eight parameters."""
        import msgspec

        shape = msgspec.structs.replace(cold_clock.nothing_like(like), parameters=(Pointer(buffer="x"),) * 8)
        return BoundLaunch(self._parameters, shape, {"x": 256}, self._context.queue.stream).enqueue

    def spacers(self) -> list[Part]:
        return [self._spacer.enqueue] * SPACERS


def graph_of(timed: Timed, parts: Sequence[Part], before: Sequence[Part] = ()) -> Graph:
    """Sweep, then `before`; event, `parts`, event."""
    queue, sweep = timed.context.queue, timed.context.sweep  # made here: no memory while a graph is captured

    def enqueue() -> None:
        sweep.enqueue()
        for part in before:
            part()
        queue.record_node(queue.start)
        for part in parts:
            part()
        queue.record_node(queue.end)

    return queue.graph(enqueue)


def readings_of(timed: Timed, parts: Sequence[Part], before: Sequence[Part] = ()) -> list[float]:
    """Microseconds between the two events."""
    graph, found = graph_of(timed, parts, before), []
    for _ in range(timed.readings):
        timed.shared.prepare()
        timed.plan.renew()
        graph.launch()
        timed.context.queue.wait()
        found.append(timed.context.queue.elapsed_us())
    graph.free()
    return found


def warm_empty_us(timed: Timed, empty: Part) -> float:
    """What one more empty kernel takes in a long graph, gap included."""
    queue, spans = timed.context.queue, []
    for count in (LONG, 2 * LONG):
        graph = queue.graph(lambda count=count: [empty() for _ in range(count)])
        found = []
        for _ in range(timed.readings):
            with queue.held():
                queue.record(queue.start)
                graph.launch()
                queue.record(queue.end)
            queue.wait()
            found.append(queue.elapsed_us())
        graph.free()
        spans.append(median(found))
    return (spans[1] - spans[0]) / LONG


def by_graphs(timed: Timed, empty: Empty) -> dict[str, float]:
    """The first half of a row; `raw` and `l1` are needed for the second."""
    first, call = timed.plan.first, partial(timed.plan.enqueue, 0)
    one, two = empty.plain(0, first), empty.plain(1, first)
    with_parameters = empty.with_parameters(first)

    def read(*parts: Part, spaced: bool = False) -> float:
        return median(readings_of(timed, parts, empty.spacers() if spaced else ()))

    raws = readings_of(timed, [call])
    raw, l1 = median(raws), read(one)
    w, ordered = warm_empty_us(timed, one), sorted(set(raws))
    return {
        "raw": raw,
        "l1": l1,
        "now": raw - l1 + w,
        "two": raw - (2 * l1 - read(one, two)),
        "same": raw - (2 * l1 - read(one, one)),
        "spaced": read(call, spaced=True) - read(one, spaced=True) + w,
        "params": raw - read(with_parameters) + warm_empty_us(timed, with_parameters),
        "step": min((b - a for a, b in itertools.pairwise(ordered)), default=0.0),
    }


def by_cupti(timed: Timed, empty: Empty, own: Recorder, graphs: dict[str, float]) -> dict[str, float]:
    """The second half of a row."""
    first, nodes = timed.plan.first, timed.plan.nodes
    cold = CuptiColdClock(timed.context, {"a": timed.plan}, timed.shared)
    cupti = median(cold.read("a", turn) for turn in range(timed.readings))
    two = _records(timed, own, [empty.plain(0, first), empty.plain(1, first)], 2)
    call = _records(timed, own, [partial(timed.plan.enqueue, 0)], nodes)
    nothing = median(records[0][1] - records[0][0] for records in two) / 1000
    return {
        "cupti": cupti,
        "known": graphs["raw"] - graphs["l1"] + nothing,
        "empty": nothing,
        "gap": median(records[1][0] - records[0][1] for records in two) / 1000,
        "call": median(max(end for _, end in records) - records[0][0] for records in call) / 1000,
    }


def _records(timed: Timed, own: Recorder, parts: Sequence[Part], nodes: int) -> list[list[tuple[int, int]]]:
    """Start and end in nanoseconds of the nodes behind the sweep, one list a reading."""
    graph, found = graph_of(timed, parts), []
    for _ in range(timed.readings):
        timed.shared.prepare()
        timed.plan.renew()
        timed.context.queue.wait()
        own.drain()
        graph.launch()
        timed.context.queue.wait()
        records = [(one.start_ns, one.end_ns) for one in own.drain()]
        if len(records) == nodes + 1:
            found.append(records[1:])
    graph.free()
    if not found:
        raise SystemExit(f"CUPTI never gave {nodes + 1} records of a graph of so many kernels")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=int, default=41)
    readings = parser.parse_args().readings
    card = open_cuda(probe().arch)
    context, code, empty = card._context, binaries(card.device.arch), Empty(card._context)
    chosen, rows = subjects()[:6], []
    timed = []
    for subject in chosen:
        shared = SharedBuffers((subject.call,), [subject.values(s) for s in range(SETS)], context.queue.stream)
        plan = PlanSubject(load_module(context, code[subject.source]), subject.call, shared, context.queue)
        plan.grow(shared.cycle)
        timed.append(Timed(context, shared, plan, readings))
        rows.append(by_graphs(timed[-1], empty))
    print(f"{card.device.name}, driver {card.device.fingerprint['driver']}; us")
    print(f"{'kernel':28}" + "".join(f"{name:>9}" for name in (*GRAPHS, *RECORDED, "raw", "l1")))
    own = recorder()
    own.start()
    for subject, one, row in zip(chosen, timed, rows, strict=True):
        row |= by_cupti(one, empty, own, row)
        print(f"{subject.name:28}" + "".join(f"{row[name]:9.3f}" for name in (*GRAPHS, *RECORDED, "raw", "l1")))
    own.stop()


if __name__ == "__main__":
    main()
