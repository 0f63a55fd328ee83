"""What is timed: kernels with their buffers in place, one slot for each call of a batch.

Inputs are shared, so that all subjects read the same memory. Each subject has outputs of its own for each input set,
and one copy of its scratch, as a production call would. An inout is overwritten by the call, so each call of a batch
has its own copy, restored before the batch.
"""

from collections.abc import Sequence
from typing import Protocol

from kerneltrial.devices.cuda.launches import BoundLaunch, Module
from kerneltrial.devices.cuda.memory import MARGIN_BYTES, POISON_BYTE, Guarded, buffer_bytes, given_bytes
from kerneltrial.devices.cuda.queue import Queue
from kerneltrial.devices.device import Values
from kerneltrial.inputs.calls import Call

_POISON = POISON_BYTE["nan"]


class Subject(Protocol):
    """Something whose calls can be put on a stream and timed."""

    @property
    def own_bytes(self) -> int:
        """Bytes that a call of a batch needs for itself alone; 0 where calls on one input set share a slot."""

    @property
    def nodes(self) -> int:
        """Graph nodes of one call."""

    def grow(self, slots: int) -> None:
        """Make slots up to this number."""

    def prepare(self, poison: bool) -> None:
        """Restore what calls overwrite; with `poison`, also fill the outputs. In stream order, never timed."""

    def enqueue(self, slot: int) -> None:
        """Put one call on the stream."""


class SharedInputs:
    """The input sets on the card: inputs that are read in place, and pristine copies of inouts."""

    def __init__(self, calls: Sequence[Call], values: Sequence[Values]) -> None:
        self.count = len(values)
        given = {b.name: b for call in calls for b in call.buffers if b.initial == "given"}
        self._host = [{name: given_bytes(b, one) for name, b in given.items()} for one in values]
        self._sets: list[dict[str, Guarded]] = []
        for host in self._host:
            placed: dict[str, Guarded] = {}
            self._sets.append(placed)
            for name, buffer in given.items():
                placed[name] = Guarded(buffer, _POISON)
                placed[name].upload(host[name])

    def of(self, slot: int) -> dict[str, Guarded]:
        """The set that a slot reads."""
        return self._sets[slot % self.count]

    def changed(self) -> str:
        """Name of an input whose bytes or margins changed, or empty."""
        for host, placed in zip(self._host, self._sets, strict=True):
            for name, guarded in placed.items():
                if not ((guarded.download() == host[name]).all() and guarded.margins_intact()):
                    return name
        return ""

    def free(self) -> None:
        for placed in self._sets:
            for guarded in placed.values():
                guarded.free()


class PlanSubject:
    """A launch plan of a loaded binary."""

    def __init__(self, module: Module, call: Call, inputs: SharedInputs, queue: Queue) -> None:
        self._module, self._call, self._inputs, self._queue = module, call, inputs, queue
        self._scratch = {b.name: Guarded(b, _POISON) for b in call.buffers if b.role == "scratch"}
        for guarded in self._scratch.values():
            guarded.fill(_POISON if guarded.buffer.initial == "poisoned" else 0, queue.stream)
        self._zeroed = [g for g in self._scratch.values() if g.buffer.initial == "zeroed"]
        self._slots: list[tuple[dict[str, Guarded], list[BoundLaunch]]] = []
        self.grow(inputs.count)

    @property
    def own_bytes(self) -> int:
        return sum(buffer_bytes(b) + 2 * MARGIN_BYTES for b in self._call.buffers if b.role == "inout")

    @property
    def nodes(self) -> int:
        return len(self._call.launches) + len(self._zeroed)

    def grow(self, slots: int) -> None:
        for index in range(len(self._slots), slots):
            own = {b.name: Guarded(b, _POISON) for b in self._call.buffers if b.role in ("output", "inout")}
            placed = self._inputs.of(index) | self._scratch | own
            addresses = {name: guarded.address for name, guarded in placed.items()}
            bound = [BoundLaunch(self._module, launch, addresses, self._queue.stream) for launch in self._call.launches]
            self._slots.append((own, bound))

    def prepare(self, poison: bool) -> None:
        for index, (own, _) in enumerate(self._slots):
            pristine = self._inputs.of(index)
            for name, guarded in own.items():
                if name in pristine:
                    guarded.copy_from(pristine[name], self._queue.stream)
                elif poison:
                    guarded.fill(_POISON, self._queue.stream)

    def enqueue(self, slot: int) -> None:
        for guarded in self._zeroed:
            guarded.fill(0, self._queue.stream)
        for launch in self._slots[slot % len(self._slots)][1]:
            launch.enqueue()

    def outputs(self) -> tuple[dict[str, bytes], ...]:
        """Bytes of outputs and inouts, one mapping an input set."""
        return tuple(
            {name: guarded.download().tobytes() for name, guarded in own.items()}
            for own, _ in self._slots[: self._inputs.count]
        )

    def margins_intact(self) -> bool:
        """Whether nothing was written beside the subject's own buffers."""
        return all(guarded.margins_intact() for guarded in self._guarded())

    def free(self) -> None:
        for guarded in self._guarded():
            guarded.free()

    def _guarded(self) -> list[Guarded]:
        return [*self._scratch.values(), *(g for own, _ in self._slots for g in own.values())]
