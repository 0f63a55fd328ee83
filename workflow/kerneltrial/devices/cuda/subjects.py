"""What is timed: kernels with their buffers in place, and where each call of a batch reads and writes.

All subjects read the same inputs and write the same outputs, at the same addresses: where a buffer happens to lie in
memory alone makes up to a tenth of difference (seen on an H200, 1024 x 1024 x 1024), which would be taken for speed.

A kernel that computes one element, finds it in the output already and returns would be timed as a fast one. So no timed
call finds its own answer where it writes. There is one slot of outputs more than input sets, and call i of a batch
reads set i mod sets and writes slot i mod (sets + 1): what lies there is the answer to another set, or poison. (With
one input set alone there is no other answer; trials have three.) Before every reading outputs are filled.

Each subject has one copy of its scratch, as in production. Uninitialised scratch is filled before what is timed of each
reading; what a call leaves there for a later call of the same batch stays, as it would in production.

An inout is overwritten by the call, so each call of a batch has its own copy, and so have the outputs beside it; all
are restored or filled before each run of the batch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kerneltrial.devices.cuda.launches import BoundLaunch, Module
from kerneltrial.devices.cuda.memory import Guarded, buffer_bytes, given_bytes
from kerneltrial.devices.cuda.places import MARGIN_BYTES
from kerneltrial.devices.cuda.queue import Queue
from kerneltrial.devices.device import Values
from kerneltrial.devices.poison import POISON_BYTE
from kerneltrial.inputs.calls import Buffer, Call, ResolvedLaunch

_POISON = POISON_BYTE["nan"]


class Subject(Protocol):
    """Something whose calls can be put on a stream and timed."""

    @property
    def nodes(self) -> int:
        """Graph nodes of one call, at most."""

    @property
    def first(self) -> ResolvedLaunch | None:
        """The first launch of a call, where it is known."""

    def grow(self, calls: int) -> None:
        """Be ready for so many calls in a row."""

    def enqueue(self, index: int) -> None:
        """Put the call with this number on the stream."""

    def renew(self) -> None:
        """Fill uninitialised scratch. In stream order, never timed."""


class SharedBuffers:
    """Inputs, outputs and inouts of a contract on the card, for all subjects; see the module's text."""

    def __init__(self, calls: Sequence[Call], values: Sequence[Values], stream: Any) -> None:
        self.sets = len(values)
        self._stream = stream
        self._buffers = _of_contract(calls)
        given = [buffer for buffer in self._buffers if buffer.initial == "given"]
        self._host = [{buffer.name: given_bytes(buffer, one) for buffer in given} for one in values]
        self._given: list[dict[str, Guarded]] = []
        self._slots: list[dict[str, Guarded]] = []
        self._left: dict[int, int] = {}  # by input set: the slot where its last call wrote
        for host in self._host:
            placed: dict[str, Guarded] = {}
            self._given.append(placed)
            for buffer in given:
                placed[buffer.name] = Guarded(buffer, _POISON)
                placed[buffer.name].upload(host[buffer.name])
        self.grow(self.sets if self.own_bytes else self.sets + 1)

    @property
    def own_bytes(self) -> int:
        """Bytes that each call of a batch needs for itself alone; 0 where calls share slots."""
        return sum(buffer_bytes(b) + 2 * MARGIN_BYTES for b in self._buffers if b.role == "inout")

    @property
    def cycle(self) -> int:
        """So many calls meet every pair of input set and slot once; after them everything comes again."""
        return self.sets if self.own_bytes else self.sets * (self.sets + 1)

    def grow(self, slots: int) -> None:
        """Make slots up to this number; only where each call needs its own."""
        for _ in range(len(self._slots), slots):
            own: dict[str, Guarded] = {}
            self._slots.append(own)
            for buffer in self._buffers:
                if buffer.role != "input":
                    own[buffer.name] = Guarded(buffer, _POISON)

    def placed(self, index: int) -> Mapping[str, Guarded]:
        """The buffers that the call with this number works on."""
        return self._given[index % self.sets] | self._slots[index % len(self._slots)]

    def prepare(self) -> None:
        """Restore inouts and fill outputs. In stream order, never timed."""
        self._left.clear()
        for index, own in enumerate(self._slots):
            pristine = self._given[index % self.sets]
            for name, guarded in own.items():
                if name in pristine:
                    guarded.copy_from(pristine[name], self._stream)
                else:
                    guarded.fill(_POISON, self._stream)

    def again(self, calls: int) -> None:
        """Get ready for the same batch once more. In stream order, never timed.

        After whole cycles each slot holds the answer to another set than the one that comes next, and nothing is done,
        so that the caches stay as the batch left them.
        """
        if self.own_bytes or calls % self.cycle:
            self.prepare()

    def ran(self, calls: int) -> None:
        """Take note that the first so many calls of a batch were put on the stream."""
        for index in range(calls):
            self._left[index % self.sets] = index % len(self._slots)

    def outputs(self) -> tuple[dict[str, bytes], ...]:
        """Bytes of outputs and inouts, one mapping an input set: what the last call on each set left.

        Raises
        ------
        ValueError
            An input set was not used since the outputs were filled: the caller's mistake.
        """
        if len(self._left) < self.sets:
            raise ValueError(f"calls ran on {len(self._left)} of {self.sets} input sets since the outputs were filled")
        left = [self._slots[self._left[one]] for one in range(self.sets)]
        return tuple({name: guarded.download().tobytes() for name, guarded in own.items()} for own in left)

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
        self._poisoned = [g for g in self._scratch.values() if g.buffer.initial == "poisoned"]

    @property
    def nodes(self) -> int:
        return len(self._call.launches) + len(self._zeroed)

    @property
    def first(self) -> ResolvedLaunch:
        return self._call.launches[0]

    def grow(self, calls: int) -> None:
        for index in range(len(self._bound), calls):
            placed = {**self._shared.placed(index), **self._scratch}
            addresses = {name: guarded.address for name, guarded in placed.items()}
            launches = self._call.launches
            self._bound.append([BoundLaunch(self._module, one, addresses, self._queue.stream) for one in launches])

    def enqueue(self, index: int) -> None:
        for guarded in self._zeroed:
            guarded.fill(0, self._queue.stream)
        for launch in self._bound[index % len(self._bound)]:
            launch.enqueue()

    def renew(self) -> None:
        for guarded in self._poisoned:
            guarded.fill(_POISON, self._queue.stream)

    def unrestored(self) -> str:
        """Name of self-restoring scratch that is not zero, or empty."""
        own = (g for g in self._scratch.values() if g.buffer.initial == "self_restoring")
        return next((guarded.buffer.name for guarded in own if guarded.download().any()), "")

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
