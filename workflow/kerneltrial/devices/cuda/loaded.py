"""A binary on the card: one call on fresh buffers, and everything that is looked at around it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.driver import CudaError
from kerneltrial.devices.cuda.launches import BoundLaunch, Module, TurnedDown, require_room
from kerneltrial.devices.cuda.memory import Guarded, buffer_bytes, freed, given_bytes
from kerneltrial.devices.cuda.places import Fenced, Plain
from kerneltrial.devices.device import Conditions, Refused, Run, Values
from kerneltrial.devices.placement import offset_of
from kerneltrial.devices.poison import poison_byte
from kerneltrial.inputs.calls import Buffer, Call
from kerneltrial.records.counts import Counts
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.sanitizer import TOOLS, not_run

Given = dict[str, NDArray[np.uint8]]
# What each tool of compute-sanitizer would look for: none looks at this run (`devices.cuda.sanitizer` is for them).
_UNCHECKED = {
    "bounds": (not_run("memcheck"),),
    "all": (
        *(not_run(tool) for tool in TOOLS),
        Finding(reason=Reason.CHECK_ABSENT, detail="no tool looks for races between blocks in global memory"),
    ),
}
_AFTER_FAULT = "inputs, margins and self-restoring scratch could not be compared: the fault ended the context"


class CudaLoaded:
    """See `devices.device.Loaded`."""

    def __init__(self, context: Context, module: Module) -> None:
        self._context = context
        self._module = module

    def run(self, call: Call, values: Values, conditions: Conditions) -> Run:
        """One call on fresh buffers.

        Raises
        ------
        DeviceProblem
            Out of memory, or the card is lost.
        ValueError
            A value is missing or has the wrong size: the caller's mistake.
        """
        if self._context.spent:
            return _ended(self._context.spent, ())
        given = {b.name: given_bytes(b, values) for b in call.buffers if b.initial == "given"}
        unchecked = _unchecked(conditions)
        try:
            require_room(call, self._context.memory_bytes)
            with freed([]) as buffers:
                unchecked += self._unfenced(conditions)
                for buffer in call.buffers:
                    buffers.append(self._placed(buffer, conditions))
                    if conditions.poison == "plain":
                        buffers[-1].poison(conditions)
                    _initialise(buffers[-1], given, self._context)
                unchecked += _unscrubbed(self._context.scrub(poison_byte(conditions)))
                self._launch(call, buffers)
                return _observed(buffers, given, unchecked)
        except TurnedDown as error:
            return _not_launched(error.finding, unchecked)
        except CudaError as error:
            if not error.is_fault:
                raise error.problem() from error
            if self._context.nvml.lost():
                raise error.lost() from error
            entries = ", ".join(launch.entry for launch in call.launches)
            self._context.spent = error.finding(entries)
            if conditions.fence != "none" and not self._context.fences.absent:
                self._context.spent = _at_a_fence(self._context.spent)
            return _ended(self._context.spent, unchecked)

    def count(self, call: Call, values: Values, conditions: Conditions) -> Counts:
        """A card does not count; raises `Refused`."""
        detail = "counts of instructions come from the cpu device; a card is timed instead"
        raise Refused(Finding(reason=Reason.NOT_MEASURED, detail=detail))

    def _unfenced(self, conditions: Conditions) -> tuple[Finding, ...]:
        """What is unchecked since this card has no fences."""
        absent = "" if conditions.fence == "none" else self._context.fences.absent
        if not absent:
            return ()
        detail = (
            f"buffers were not fenced ({absent}): reads outside that hit mapped memory, writes of an input's own bytes"
        )
        return (Finding(reason=Reason.CHECK_ABSENT, detail=detail),)

    def _placed(self, buffer: Buffer, conditions: Conditions) -> Guarded:
        poison, offset, at = poison_byte(conditions), offset_of(conditions, buffer.name), conditions.fence
        if at == "none" or self._context.fences.absent:
            return Guarded(buffer, poison, place=Plain(buffer_bytes(buffer), offset, self._context.pool))
        shift = offset if at == "start" else conditions.offset_bytes
        return Guarded(buffer, poison, place=Fenced(self._context.fences, buffer_bytes(buffer), shift, at))

    def _launch(self, call: Call, buffers: Sequence[Guarded]) -> None:
        queue = self._context.queue
        addresses = {guarded.buffer.name: guarded.address for guarded in buffers}
        bound = [BoundLaunch(self._module, launch, addresses, queue.stream) for launch in call.launches]
        queue.wait()
        try:
            for launch in bound:
                launch.enqueue()
        finally:
            queue.wait()


def _initialise(guarded: Guarded, given: Given, context: Context) -> None:
    """Bring in what the call starts from; what is poisoned lies there already."""
    match guarded.buffer.initial:
        case "given":
            guarded.upload(given[guarded.buffer.name])
            if guarded.buffer.role == "input":
                guarded.protect()
        case "zeroed" | "self_restoring":
            guarded.fill(0, context.queue.stream)


def _unchecked(conditions: Conditions) -> tuple[Finding, ...]:
    return _UNCHECKED[conditions.checks]


def _unscrubbed(why: str) -> tuple[Finding, ...]:
    detail = f"shared memory was not filled before the call ({why}): what a call finds there that an earlier one left"
    return (Finding(reason=Reason.CHECK_ABSENT, detail=detail),) if why else ()


def _at_a_fence(fault: Finding) -> Finding:
    """The fault in words that say what lay around the buffers."""
    words = "; each buffer lay between pages that are not mapped, and inputs could only be read"
    return Finding(reason=fault.reason, detail=fault.detail + words)


def _observed(buffers: Sequence[Guarded], given: Given, unchecked: tuple[Finding, ...]) -> Run:
    outputs, inputs_intact, scratch_restored = {}, True, True
    for guarded in buffers:
        buffer = guarded.buffer
        if buffer.role in ("output", "inout"):
            outputs[buffer.name] = guarded.download().tobytes()
        elif buffer.role == "input":
            inputs_intact &= bool(np.array_equal(guarded.download(), given[buffer.name]))
        elif buffer.initial == "self_restoring":
            scratch_restored &= not guarded.download().any()
    return Run(
        completed=True,
        outputs=outputs,
        inputs_intact=inputs_intact,
        guards_intact=all(guarded.margins_intact() for guarded in buffers),
        scratch_restored=scratch_restored,
        findings=(),
        unchecked=unchecked,
    )


def _not_launched(finding: Finding, unchecked: tuple[Finding, ...]) -> Run:
    return Run(
        completed=False,
        outputs={},
        inputs_intact=True,
        guards_intact=True,
        scratch_restored=True,
        findings=(finding,),
        unchecked=unchecked,
    )


def _ended(finding: Finding, unchecked: tuple[Finding, ...]) -> Run:
    absent = Finding(reason=Reason.CHECK_ABSENT, detail=_AFTER_FAULT)
    return _not_launched(finding, (*unchecked, absent))
