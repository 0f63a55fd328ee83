"""The buffers of one call on the card: all together in one allocation where they are small, else each in a place apart.

A small call takes less time than a single copy, and contexts that share a card wait for each other at each of them. So
what is small is made ready on the host, margins and poison and all, goes to the card in one copy and comes back in one.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.driver import call as driver_call
from kerneltrial.devices.cuda.memory import Guarded, buffer_bytes
from kerneltrial.devices.cuda.places import MARGIN_BYTES, Fenced, Plain
from kerneltrial.devices.device import Conditions
from kerneltrial.devices.placement import offset_of, order_of
from kerneltrial.devices.poison import MARGIN_DTYPE, poison_byte, poison_into
from kerneltrial.inputs.calls import Buffer, Call

Bytes = NDArray[np.uint8]
Given = dict[str, Bytes]


class Laid(Protocol):
    """Buffers on the card, ready for a call; `addresses` by name."""

    @property
    def addresses(self) -> dict[str, int]: ...

    def look(self) -> None:
        """The call is over: what is asked for below is read now."""

    def payload(self, name: str) -> Bytes:
        """The bytes of a buffer."""

    def margins_intact(self) -> bool:
        """Whether the bytes around every buffer are as they were set."""

    def free(self) -> None: ...


def lay(context: Context, call: Call, given: Given, conditions: Conditions) -> Laid:
    """Place what a call works on, filled as the conditions say; `given` holds the bytes of inputs and inouts.

    Raises
    ------
    CudaError
        The card has no room, or cannot be used.
    """
    fenced = conditions.fence != "none" and not context.fences.absent
    total = places(call.buffers, conditions)[1]
    if not fenced and total <= context.staging.nbytes:
        return Together(context, call.buffers, given, conditions)
    return Apart(context, call.buffers, given, conditions)


def places(buffers: Sequence[Buffer], conditions: Conditions) -> tuple[dict[str, slice], int]:
    """Where each buffer lies in one allocation that begins at a multiple of a margin's size, and the bytes of all."""
    spans: dict[str, slice] = {}
    at = MARGIN_BYTES
    for buffer in order_of(conditions, buffers):
        start = -(-at // MARGIN_BYTES) * MARGIN_BYTES + offset_of(conditions, buffer.name)
        end = start + buffer_bytes(buffer)
        spans[buffer.name] = slice(start, end)
        at = end + MARGIN_BYTES
    return spans, at


class Together:
    """One allocation from the pool; whatever lies between the buffers is margin, and all of it is compared."""

    def __init__(self, context: Context, buffers: Sequence[Buffer], given: Given, conditions: Conditions) -> None:
        self._context = context
        self._spans, at = places(buffers, conditions)
        self._total = at
        self._taken = context.pool.take(at + MARGIN_BYTES)
        self._start = -(-self._taken // MARGIN_BYTES) * MARGIN_BYTES
        self._image, self._back = context.staging.image[:at], context.staging.back[:at]
        self._fill(buffers, given, conditions)
        driver_call("cuMemcpyHtoDAsync", self._start, self._image.ctypes.data, at, context.queue.stream)

    def _fill(self, buffers: Sequence[Buffer], given: Given, conditions: Conditions) -> None:
        margin = np.empty(MARGIN_BYTES, np.uint8)
        poison_into(margin, conditions, "margin", MARGIN_DTYPE)
        for span in self._margins():
            self._image[span] = np.resize(margin, span.stop - span.start)
        for buffer in buffers:
            payload = self._image[self._spans[buffer.name]]
            match buffer.initial:
                case "given":
                    payload[:] = given[buffer.name]
                case "poisoned":
                    poison_into(payload, conditions, buffer.name, buffer.dtype)
                case _:
                    payload[:] = 0

    def _margins(self) -> list[slice]:
        spans = sorted(self._spans.values(), key=lambda span: span.start)
        starts = [0, *(span.stop for span in spans)]
        ends = [*(span.start for span in spans), self._total]
        return [slice(start, end) for start, end in zip(starts, ends, strict=True)]

    @property
    def addresses(self) -> dict[str, int]:
        return {name: self._start + span.start for name, span in self._spans.items()}

    def look(self) -> None:
        queue = self._context.queue
        driver_call("cuMemcpyDtoHAsync", self._back.ctypes.data, self._start, self._total, queue.stream)
        queue.wait()

    def payload(self, name: str) -> Bytes:
        return self._back[self._spans[name]]

    def margins_intact(self) -> bool:
        return all(np.array_equal(self._back[span], self._image[span]) for span in self._margins())

    def free(self) -> None:
        self._context.pool.give(self._taken, self._total + MARGIN_BYTES)


class Apart:
    """Each buffer in a place of its own: plain, or between fences."""

    def __init__(self, context: Context, buffers: Sequence[Buffer], given: Given, conditions: Conditions) -> None:
        self._context = context
        self._guarded: dict[str, Guarded] = {}
        try:
            for buffer in buffers:
                guarded = self._guarded[buffer.name] = self._placed(buffer, conditions)
                if conditions.poison == "plain":
                    guarded.poison(conditions)
                self._initialise(guarded, given)
        except BaseException:
            self.free()
            raise

    def _placed(self, buffer: Buffer, conditions: Conditions) -> Guarded:
        poison, offset, at = poison_byte(conditions), offset_of(conditions, buffer.name), conditions.fence
        context = self._context
        if at == "none" or context.fences.absent:
            return Guarded(buffer, poison, place=Plain(buffer_bytes(buffer), offset, context.pool))
        shift = offset if at == "start" else conditions.offset_bytes
        return Guarded(buffer, poison, place=Fenced(context.fences, buffer_bytes(buffer), shift, at))

    def _initialise(self, guarded: Guarded, given: Given) -> None:
        """Bring in what the call starts from; what is poisoned lies there already."""
        match guarded.buffer.initial:
            case "given":
                guarded.upload(given[guarded.buffer.name])
                if guarded.buffer.role == "input":
                    guarded.protect()
            case "zeroed" | "self_restoring":
                guarded.fill(0, self._context.queue.stream)

    @property
    def addresses(self) -> dict[str, int]:
        return {name: guarded.address for name, guarded in self._guarded.items()}

    def look(self) -> None:
        """Each is read when it is asked for."""

    def payload(self, name: str) -> Bytes:
        return self._guarded[name].download()

    def margins_intact(self) -> bool:
        return all(guarded.margins_intact() for guarded in self._guarded.values())

    def free(self) -> None:
        for guarded in self._guarded.values():
            guarded.free()
