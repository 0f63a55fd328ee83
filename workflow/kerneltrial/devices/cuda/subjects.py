"""What is timed: kernels with their buffers in place, one slot for each call of a batch.

All subjects read the same inputs and write the same outputs, at the same addresses: where a buffer happens to lie in
memory alone makes up to a tenth of difference (seen on an H200, 1024 x 1024 x 1024), which would be taken for speed.
Outputs are filled before every reading, so nobody profits from what another left. Each subject has one copy of its
scratch, as in production. An inout is overwritten by the call, so each call of a batch has its own copy, restored
before the batch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kerneltrial.devices.cuda.launches import BoundLaunch, Module
from kerneltrial.devices.cuda.memory import MARGIN_BYTES, Guarded, buffer_bytes, given_bytes
from kerneltrial.devices.cuda.queue import Queue
from kerneltrial.devices.device import Values
from kerneltrial.devices.poison import POISON_BYTE
from kerneltrial.inputs.calls import Buffer, Call

_POISON = POISON_BYTE["nan"]


class Subject(Protocol):
    """Something whose calls can be put on a stream and timed."""

    @property
    def nodes(self) -> int:
        """Graph nodes of one call, at most."""

    def grow(self, slots: int) -> None:
        """Make slots up to this number."""

    def enqueue(self, slot: int) -> None:
        """Put one call on the stream."""


class SharedBuffers:
    """Inputs, outputs and inouts of a contract on the card, for all subjects; slot i reads input set i mod `sets`."""

    def __init__(self, calls: Sequence[Call], values: Sequence[Values], stream: Any) -> None:
        self.sets = len(values)
        self._stream = stream
        self._buffers = _of_contract(calls)
        given = [buffer for buffer in self._buffers if buffer.initial == "given"]
        self._host = [{buffer.name: given_bytes(buffer, one) for buffer in given} for one in values]
        self._given: list[dict[str, Guarded]] = []
        self._slots: list[dict[str, Guarded]] = []
        for host in self._host:
            placed: dict[str, Guarded] = {}
            self._given.append(placed)
            for buffer in given:
                placed[buffer.name] = Guarded(buffer, _POISON)
                placed[buffer.name].upload(host[buffer.name])
        self.grow(self.sets)

    @property
    def own_bytes(self) -> int:
        """Bytes that each call of a batch needs for itself alone; 0 where calls on one input set share a slot."""
        return sum(buffer_bytes(b) + 2 * MARGIN_BYTES for b in self._buffers if b.role == "inout")

    def grow(self, slots: int) -> None:
        """Make slots up to this number."""
        for _ in range(len(self._slots), slots):
            own: dict[str, Guarded] = {}
            self._slots.append(own)
            for buffer in self._buffers:
                if buffer.role != "input":
                    own[buffer.name] = Guarded(buffer, _POISON)

    def slot(self, index: int) -> Mapping[str, Guarded]:
        """The buffers that a call in this slot works on."""
        return self._given[index % self.sets] | self._slots[index]

    def prepare(self, poison: bool) -> None:
        """Restore inouts; with `poison`, also fill the outputs. In stream order, never timed."""
        for index, own in enumerate(self._slots):
            pristine = self._given[index % self.sets]
            for name, guarded in own.items():
                if name in pristine:
                    guarded.copy_from(pristine[name], self._stream)
                elif poison:
                    guarded.fill(_POISON, self._stream)

    def outputs(self) -> tuple[dict[str, bytes], ...]:
        """Bytes of outputs and inouts, one mapping an input set."""
        return tuple(
            {name: guarded.download().tobytes() for name, guarded in own.items()} for own in self._slots[: self.sets]
        )

    def changed(self) -> str:
        """Name of an input whose bytes changed, or empty."""
        for host, placed in zip(self._host, self._given, strict=True):
            for name, guarded in placed.items():
                if not (guarded.download() == host[name]).all():
                    return name
        return ""

    def margins_intact(self) -> bool:
        """Whether nothing was written beside the buffers."""
        return all(guarded.margins_intact() for placed in self._all() for guarded in placed.values())

    def free(self) -> None:
        for placed in self._all():
            for guarded in placed.values():
                guarded.free()

    def _all(self) -> list[dict[str, Guarded]]:
        return [*self._given, *self._slots]


class PlanSubject:
    """A launch plan of a loaded binary."""

    def __init__(self, module: Module, call: Call, shared: SharedBuffers, queue: Queue) -> None:
        self._module, self._call, self._shared, self._queue = module, call, shared, queue
        self._scratch: dict[str, Guarded] = {}
        self._bound: list[list[BoundLaunch]] = []
        for buffer in call.buffers:
            if buffer.role == "scratch":
                self._scratch[buffer.name] = Guarded(buffer, _POISON)
                self._scratch[buffer.name].fill(_POISON if buffer.initial == "poisoned" else 0, queue.stream)
        self._zeroed = [g for g in self._scratch.values() if g.buffer.initial == "zeroed"]

    @property
    def nodes(self) -> int:
        return len(self._call.launches) + len(self._zeroed)

    def grow(self, slots: int) -> None:
        for index in range(len(self._bound), slots):
            placed = {**self._shared.slot(index), **self._scratch}
            addresses = {name: guarded.address for name, guarded in placed.items()}
            launches = self._call.launches
            self._bound.append([BoundLaunch(self._module, one, addresses, self._queue.stream) for one in launches])

    def enqueue(self, slot: int) -> None:
        for guarded in self._zeroed:
            guarded.fill(0, self._queue.stream)
        for launch in self._bound[slot % len(self._bound)]:
            launch.enqueue()

    def margins_intact(self) -> bool:
        """Whether nothing was written beside the scratch."""
        return all(guarded.margins_intact() for guarded in self._scratch.values())

    def free(self) -> None:
        for guarded in self._scratch.values():
            guarded.free()


def _of_contract(calls: Sequence[Call]) -> tuple[Buffer, ...]:
    """The contract's buffers, which all calls must agree on."""
    found: dict[str, Buffer] = {}
    for call in calls:
        for buffer in call.buffers:
            if buffer.role != "scratch" and found.setdefault(buffer.name, buffer) != buffer:
                raise ValueError(f"baseline and candidate differ in {buffer.name}: are they of one contract?")
    return tuple(found.values())
