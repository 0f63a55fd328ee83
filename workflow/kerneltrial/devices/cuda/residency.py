"""What a cold reading does to the L2 before a call: it is emptied, and buffers that a case states as warm are read in.

By reads alone, in the same way for every subject: reads leave no line that would have to be written back while the call
runs. Each buffer is read once, after the sweep, so that it is what was used last.
"""

from collections.abc import Sequence

from kerneltrial.devices.cuda.launches import BoundLaunch
from kerneltrial.devices.cuda.subjects import SharedBuffers
from kerneltrial.devices.cuda.sweep import Sweep


class Residency:
    """The launches that go before call `index`, whose buffers named in `warm` are then in the L2.

    All are kernels named `sweep`; `reads` is how many.
    """

    def __init__(self, sweep: Sweep, shared: SharedBuffers, warm: Sequence[str] = ()) -> None:
        self._sweep = sweep
        self._warm: list[list[BoundLaunch]] = []
        for index in range(shared.sets):
            placed = shared.placed(index)
            self._warm.append([sweep.over(placed[name].address, placed[name].nbytes) for name in warm])
        self.reads = 1 + len(warm)

    def enqueue(self, index: int) -> None:
        """Put them on the stream."""
        self._sweep.enqueue()
        for launch in self._warm[index]:
            launch.enqueue()


def told(sweep: Sweep, shared: SharedBuffers, warm: Sequence[str]) -> dict[str, str]:
    """What the card's state says of it; nothing where no buffer is stated."""
    if not warm:
        return {}
    placed = shared.placed(0)
    read = ", ".join(f"{name} ({placed[name].nbytes} bytes)" for name in warm)
    return {"stated_residency": f"{sweep.nbytes} bytes read to empty the L2, then {read}"}
