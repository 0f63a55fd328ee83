"""What lies between the launches of one plan: on a stream and in a graph, with CUPTI recording and without. ~10 s.

    PYTHONPATH=workflow python tests/bench/launch_gaps.py [--readings 21]

The plan of two launches of `fidelity_kernels` reads 9.13 us by CUPTI's records of stream launches and 8.22 by a graph
(H200). Either recording stretches the gap between its launches, or a stream launches the second kernel later than a
graph does, recorded or not. Microseconds a call of a batch behind a held queue, by events around all of it, calls
following each other at once:

  stream, graph            no recorder in the process yet
  stream+, graph+          the same while CUPTI records
  span, inner              CUPTI's span of a call launched on the stream, and the gap between its launches
  span g, inner g          the same within the graph

Recording stretches the gap if stream+ is longer than stream; a stream's launches lie further apart than a graph's if
stream is longer than graph by more than for a plan of one launch, and `inner` longer than `inner g`.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from fidelity_kernels import Subject, _axpy, _matmul, _sum, binaries

from kerneltrial.devices.cuda.activity import Recorder, recorder
from kerneltrial.devices.cuda.clocks import batch_graph
from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.device import load_module, open_cuda
from kerneltrial.devices.cuda.probe import probe
from kerneltrial.devices.cuda.queue import Graph
from kerneltrial.devices.cuda.subjects import PlanSubject, SharedBuffers

SETS, CALLS = 2, 24
COLUMNS = ("stream", "graph", "stream+", "graph+", "span", "inner", "span g", "inner g")


@dataclass(frozen=True)
class Timed:
    """A plan on the card, its batch as a graph, and how often it is read."""

    context: Context
    plan: PlanSubject
    graph: Graph
    readings: int

    def stream(self) -> None:
        for index in range(CALLS):
            self.plan.enqueue(index)


def made(context: Context, plan: PlanSubject, readings: int) -> Timed:
    return Timed(context, plan, batch_graph(context.queue, plan, CALLS), readings)


def call_us(timed: Timed, work: Callable[[], None]) -> float:
    """Microseconds a call, gaps between calls included, by events around a batch that ran once before."""
    queue, found = timed.context.queue, []
    for _ in range(timed.readings):
        with queue.held():
            work()
            queue.record(queue.start)
            work()
            queue.record(queue.end)
        queue.wait()
        found.append(queue.elapsed_us() / CALLS)
    return median(found)


def recorded(timed: Timed, own: Recorder, work: Callable[[], None]) -> tuple[float, float]:
    """CUPTI's median span of a call, and gap between its first two nodes, in microseconds; NaN without records."""
    each, spans, gaps = timed.plan.nodes, [], []
    for _ in range(timed.readings):
        own.drain()
        with timed.context.queue.held():
            work()
        timed.context.queue.wait()
        records = own.drain()
        if len(records) != each * CALLS:
            continue
        for first in range(0, len(records), each):
            call = records[first : first + each]
            spans.append((max(one.end_ns for one in call) - call[0].start_ns) / 1000)
            gaps += [(call[1].start_ns - call[0].end_ns) / 1000] if each > 1 else []
    return tuple(median(found) if found else float("nan") for found in (spans, gaps))


def without_recorder(timed: Timed) -> dict[str, float]:
    return {"stream": call_us(timed, timed.stream), "graph": call_us(timed, timed.graph.launch)}


def with_recorder(timed: Timed, own: Recorder) -> dict[str, float]:
    row = {"stream+": call_us(timed, timed.stream), "graph+": call_us(timed, timed.graph.launch)}
    row["span"], row["inner"] = recorded(timed, own, timed.stream)
    row["span g"], row["inner g"] = recorded(timed, own, timed.graph.launch)
    return row


def plan_of(subject: Subject, context: Context, code: dict) -> PlanSubject:
    """The subject's plan on buffers of its own."""
    shared = SharedBuffers((subject.call,), [subject.values(s) for s in range(SETS)], context.queue.stream)
    plan = PlanSubject(load_module(context, code[subject.source]), subject.call, shared, context.queue)
    plan.grow(shared.cycle)
    return plan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=int, default=21)
    readings = parser.parse_args().readings
    card = open_cuda(probe().arch)
    context, code = card._context, binaries(card.device.arch)
    chosen = [_axpy(100_000), _matmul("tiled", 256, 256, 256), _sum(1 << 14), _sum(1 << 22), _axpy(1 << 24)]
    timed = [made(context, plan_of(subject, context, code), readings) for subject in chosen]
    rows = [without_recorder(one) for one in timed]
    own = recorder()
    own.start()
    print(f"{card.device.name}, driver {card.device.fingerprint['driver']}; us")
    print(f"{'plan':28}" + "".join(f"{name:>9}" for name in COLUMNS))
    for subject, one, row in zip(chosen, timed, rows, strict=True):
        row |= with_recorder(one, own)
        print(f"{subject.name:28}" + "".join(f"{row[name]:9.3f}" for name in COLUMNS))
    own.stop()


if __name__ == "__main__":
    main()
