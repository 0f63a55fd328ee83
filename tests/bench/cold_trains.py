"""Why does the witness of `fidelity.py` read more for a cold call than the trial's CUPTI clock? Needs a card; ~10 s.

    PYTHONPATH=workflow python tests/bench/cold_trains.py [--readings 31]

On an H200 the witness read 127.8 us for the matmul of 1024^3 where the trial's clocks read 124.4 to 125.1, and 17.0 for
a sum in two launches where they read 16.3. Both sweep in the same way. Microseconds by CUPTI's records of one plan on
the same buffers:

  trial    outputs filled, the L2 swept, one call, and the host waits: as a trial reads
  bare     the same without filling: if it differs, filled lines that are still written back matter
  twice    as trial, swept twice: if it is longer, one sweep leaves something in the L2
  writes   as trial, swept by a fill of twice the L2's size: what lines that must be written back cost
  train    sweep and call in turn, all put on the stream at once, as the witness does: if it differs from bare, it
           matters that the card was busy before (clocks, power, code of the kernel that is still there)
  train+   the same with outputs filled before each sweep
  idle     as trial, 20 ms after the call before: if it differs, it matters that the card was idle
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

from cold_graph_variants import SETS, Timed
from fidelity_kernels import _axpy, _matmul, _sum, binaries

from kerneltrial.devices.cuda.activity import Activity, Recorder, recorder, spans_us
from kerneltrial.devices.cuda.device import load_module, open_cuda
from kerneltrial.devices.cuda.driver import call, release
from kerneltrial.devices.cuda.probe import probe
from kerneltrial.devices.cuda.subjects import PlanSubject, SharedBuffers

COLUMNS = ("trial", "bare", "twice", "writes", "train", "train+", "idle")
IDLE_S = 0.02


def filled(timed: Timed) -> None:
    timed.shared.prepare()
    timed.plan.renew()


def single(
    timed: Timed, own: Recorder, sweeps: Sequence[Callable[[], None]], before: Callable[[], None] = lambda: None
) -> list[float]:
    """Spans of calls that the host waits for, each after `before` and the sweeps."""
    found = []
    for turn in range(timed.readings):
        own.drain()
        with timed.context.queue.held():
            before()
            for sweep in sweeps:
                sweep()
            timed.plan.enqueue(turn % timed.shared.sets)
        timed.context.queue.wait()
        found.append(spans_us(own.drain()[-timed.plan.nodes :], 1)[0])
    return found


def train(timed: Timed, own: Recorder, before: Callable[[], None] = lambda: None) -> list[float]:
    """Spans of calls behind sweeps, all of them put on the stream before the first begins."""
    own.drain()
    with timed.context.queue.held():
        for turn in range(timed.readings):
            before()
            timed.context.sweep.enqueue()
            timed.plan.enqueue(turn % timed.shared.sets)
    timed.context.queue.wait()
    return after_sweeps(own.drain(), timed.plan.nodes)


def after_sweeps(records: Sequence[Activity], nodes: int) -> list[float]:
    """The span of the so many records behind each sweep."""
    places = [place for place, one in enumerate(records) if one.name == "sweep"]
    return [spans_us(records[place + 1 : place + 1 + nodes], 1)[0] for place in places]


def row(timed: Timed, own: Recorder, dirty: Callable[[], None]) -> dict[str, float]:
    """All columns; what warms up is not among the readings."""
    sweep, fill = timed.context.sweep.enqueue, partial(filled, timed)

    def rested() -> None:
        time.sleep(IDLE_S)
        fill()

    train(timed, own)
    return {
        "trial": median(single(timed, own, [sweep], fill)),
        "bare": median(single(timed, own, [sweep])),
        "twice": median(single(timed, own, [sweep, sweep], fill)),
        "writes": median(single(timed, own, [dirty], fill)),
        "train": median(train(timed, own)),
        "train+": median(train(timed, own, fill)),
        "idle": median(single(timed, own, [sweep], rested)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=int, default=31)
    readings = parser.parse_args().readings
    card = open_cuda(probe().arch)
    context, code = card._context, binaries(card.device.arch)
    nbytes = context.sweep.nbytes
    memory = int(call("cuMemAlloc", nbytes))
    own = recorder()
    own.start()
    print(f"{card.device.name}, driver {card.device.fingerprint['driver']}; us")
    print(f"{'plan':28}" + "".join(f"{name:>9}" for name in COLUMNS))
    chosen = [_axpy(100_000), _matmul("tiled", 31, 37, 29), _sum(1 << 22), _matmul("blocked", 512, 512, 512)]
    for subject in [*chosen, _axpy(1 << 24), _matmul("blocked", 1024, 1024, 1024)]:
        shared = SharedBuffers((subject.call,), [subject.values(s) for s in range(SETS)], context.queue.stream)
        plan = PlanSubject(load_module(context, code[subject.source]), subject.call, shared, context.queue)
        plan.grow(shared.cycle)
        found = row(
            Timed(context, shared, plan, readings), own,
            partial(call, "cuMemsetD8Async", memory, 0, nbytes, context.queue.stream),
        )  # fmt: skip
        print(f"{subject.name:28}" + "".join(f"{found[name]:9.3f}" for name in COLUMNS), flush=True)
        plan.free()
        shared.free()
    own.stop()
    release("cuMemFree", memory)


if __name__ == "__main__":
    main()
