"""What a cold reading by graphs holds beside the call: variants of the graph against CUPTI's cold spans. Needs a card.

    PYTHONPATH=workflow python tests/bench/cold_graph_variants.py [--readings 21]

For each kernel of `fidelity_kernels`, microseconds: CUPTI's span; and by graphs, less what the same graph reads without
the call: `pair` (event, call, event); `thread` (2 r1 - r2 with empty kernels of one thread); `behind` (event, empty
kernel, call, event, less event, empty kernel, event); `like` (2 r1 - r2 with empty kernels in the call's own
configuration, which is the trial's clock); `second` (behind such a one).
"""

import argparse
from functools import partial
from statistics import median

from fidelity_kernels import binaries, subjects

from kerneltrial.devices.cuda import ceilings_ptx, cold_clock
from kerneltrial.devices.cuda.cupti_clock import CuptiColdClock
from kerneltrial.devices.cuda.device import load_module, open_cuda
from kerneltrial.devices.cuda.launches import BoundLaunch, Module
from kerneltrial.devices.cuda.probe import probe
from kerneltrial.devices.cuda.subjects import PlanSubject, SharedBuffers

SETS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=int, default=21)
    readings = parser.parse_args().readings
    card = open_cuda(probe().arch)
    context, code = card._context, binaries(card.device.arch)
    queue, sweep = context.queue, context.sweep
    empties = [Module(ceilings_ptx.EMPTY.encode() + b"\0") for _ in range(2)]

    def bound(number, launch):
        shape = cold_clock.nothing_like(launch)
        return BoundLaunch(empties[number], shape, {}, queue.stream)

    one_thread = cold_clock.nothing_like(None)
    nothing = [bound(0, one_thread), bound(1, one_thread)]

    def read(shared, plan, *parts):
        def enqueue():
            sweep.enqueue()
            queue.record_node(queue.start)
            for part in parts:
                part()
            queue.record_node(queue.end)

        graph, found = queue.graph(enqueue), []
        for _ in range(readings):
            shared.prepare()
            plan.renew()
            graph.launch()
            queue.wait()
            found.append(queue.elapsed_us())
        graph.free()
        return median(found)

    print(f"{card.device.name}, driver {card.device.fingerprint['driver']}")
    print(
        f"{'kernel':28} {'cupti':>9} {'pair':>9} {'thread':>9} {'behind':>9} {'like':>9} {'second':>9}   r1 r2 of like"
    )
    for subject in subjects():
        module = load_module(context, code[subject.source])
        shared = SharedBuffers((subject.call,), [subject.values(s) for s in range(SETS)], queue.stream)
        plan = PlanSubject(module, subject.call, shared, queue)
        plan.grow(shared.cycle)
        cold = CuptiColdClock(context, {"a": plan}, shared)
        cupti = median(cold.read("a", turn) for turn in range(readings))
        cold._recorder.stop()
        like = [bound(i, subject.call.launches[0]) for i in range(2)]
        call = partial(plan.enqueue, 0)
        pair, raw = read(shared, plan), read(shared, plan, call)
        r1, r2 = read(shared, plan, nothing[0].enqueue), read(shared, plan, nothing[0].enqueue, nothing[1].enqueue)
        l1, l2 = read(shared, plan, like[0].enqueue), read(shared, plan, like[0].enqueue, like[1].enqueue)
        behind = read(shared, plan, nothing[0].enqueue, call) - r1
        likes = read(shared, plan, like[0].enqueue, call) - l1
        taken = cold_clock.around(pair, r1, r2)[0]
        columns = (cupti, raw - pair, raw - taken, behind, raw - (2 * l1 - l2), likes)
        print(
            f"{subject.name:28} " + " ".join(f"{us:9.3f}" for us in columns), f"  {r1:.2f} {r2:.2f} {l1:.2f} {l2:.2f}"
        )
        plan.free()
        shared.free()


if __name__ == "__main__":
    main()
