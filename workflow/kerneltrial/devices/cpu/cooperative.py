"""Cooperative launches: all blocks are there at once, each with its own contexts and shared memory.

They take turns in a fixed order. A block runs until its threads have ended or wait for others in a loop that looks at
memory (`flow.Flow.spins`), as those of a grid-wide barrier do; then the next one runs. So results are deterministic
here too. A turn costs more of the budget than the loop, so that blocks which wait for nothing end.
"""

from kerneltrial.devices.cpu.arena import Arena
from kerneltrial.devices.cpu.kernel import Kernel
from kerneltrial.devices.cpu.launch import Worker, number_of_blocks
from kerneltrial.devices.cpu.launched import Launched
from kerneltrial.devices.cpu.logs import Tallies
from kerneltrial.devices.cpu.printing import Prints
from kerneltrial.devices.cpu.records_global import GlobalRecords
from kerneltrial.devices.cpu.refusals import unsupported_feature
from kerneltrial.devices.cpu.scheduler import SPINNING
from kerneltrial.inputs.calls import ResolvedLaunch

MOST_BYTES = 1 << 30
"""Of contexts and shared memory, of all blocks."""
A_TURN = 1000
"""Instructions that are taken from the budget when a block spins again."""


def run_together(
    kernel: Kernel, launch: ResolvedLaunch, arena: Arena, budget: int, tallies: Tallies | None = None
) -> Launched:
    """Run one cooperative launch that `refusal` has nothing against; as `launch.run_launch`."""
    workers: list[Worker] = []
    workspace, held = arena.open_workspace(), 0
    for number in range(number_of_blocks(launch)):
        worker = Worker(kernel, launch, arena, budget, range(number, number + 1))
        worker.set(workspace=workspace, **(tallies.fields() if tallies else {}))
        workers.append(worker)
        held += worker.bytes
        if held > MOST_BYTES:
            raise unsupported_feature(f"a cooperative launch whose blocks hold more than {MOST_BYTES} bytes together")
    prints = Prints() if kernel.prints else None
    records = GlobalRecords(kernel, launch, arena)
    for worker in workers:
        worker.set(**(prints.fields() if prints else {}), **records.fields())
    finding, time = None, 0
    going, resume = list(workers), False
    while going and finding is None:
        spinning: list[Worker] = []
        for worker in going:
            worker.set(budget=max(1, budget - A_TURN) if resume else budget, time=time)
            result = worker.step(resume)
            budget, time = worker.get("budget"), worker.get("time")
            if result == SPINNING:
                spinning.append(worker)
            elif result:
                finding = worker.finding()
                break
        going, resume = spinning, True
    return Launched(
        finding, budget, sum(w.get("barriers") for w in workers), workers[0].shared_bytes, records.checked,
        noncoherent=any(w.get("noncoherent") for w in workers), prints=prints,
        older=next((words for w in workers if (words := w.older())), ""),
    )  # fmt: skip
