"""A binary on the card: one call on fresh buffers, and everything that is looked at around it."""

import numpy as np

from kerneltrial.devices.cuda.context import Context
from kerneltrial.devices.cuda.driver import CudaError
from kerneltrial.devices.cuda.laid import Given, Laid, lay
from kerneltrial.devices.cuda.launches import BoundLaunch, Module, TurnedDown, require_room
from kerneltrial.devices.cuda.memory import given_bytes
from kerneltrial.devices.device import Conditions, Refused, Run, Values, not_completed
from kerneltrial.devices.poison import poison_byte
from kerneltrial.inputs.calls import Call
from kerneltrial.records.counts import Counts
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.sanitizer import BETWEEN_BLOCKS, TOOLS, not_run

# What each tool of compute-sanitizer would look for: none looks at this run (`devices.cuda.sanitizer` is for them).
_UNCHECKED = {
    "bounds": (not_run("memcheck"),),
    "all": (*(not_run(tool) for tool in TOOLS), BETWEEN_BLOCKS),
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
            unchecked += self._unfenced(conditions)
            laid = lay(self._context, call, given, conditions)
            try:
                unchecked += self._launch(call, laid, poison_byte(conditions))
                return _observed(call, laid, given, unchecked)
            finally:
                laid.free()
        except TurnedDown as error:
            return not_completed(error.finding, unchecked)
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

    def _launch(self, call: Call, laid: Laid, poison: int) -> tuple[Finding, ...]:
        """Fill shared memory and launch, with nothing to be made ready in between: where another process has the card
        for a moment, what lies in shared memory is cleared. Returns what is unchecked since it could not be filled.
        """
        queue, addresses = self._context.queue, laid.addresses
        try:
            bound = [BoundLaunch(self._module, launch, addresses, queue.stream) for launch in call.launches]
            unchecked = _unscrubbed(self._context.scrub(poison))
            for launch in bound:
                launch.enqueue()
            laid.look()
        finally:
            queue.wait()
        return unchecked


def _unchecked(conditions: Conditions) -> tuple[Finding, ...]:
    return _UNCHECKED[conditions.checks]


def _unscrubbed(why: str) -> tuple[Finding, ...]:
    detail = f"shared memory was not filled before the call ({why}): what a call finds there that an earlier one left"
    return (Finding(reason=Reason.CHECK_ABSENT, detail=detail),) if why else ()


def _at_a_fence(fault: Finding) -> Finding:
    """The fault in words that say what lay around the buffers."""
    words = "; each buffer lay between pages that are not mapped, and inputs could only be read"
    return Finding(reason=fault.reason, detail=fault.detail + words)


def _observed(call: Call, laid: Laid, given: Given, unchecked: tuple[Finding, ...]) -> Run:
    outputs, inputs_intact, scratch_restored = {}, True, True
    for buffer in call.buffers:
        if buffer.role in ("output", "inout"):
            outputs[buffer.name] = laid.payload(buffer.name).tobytes()
        elif buffer.role == "input":
            inputs_intact &= bool(np.array_equal(laid.payload(buffer.name), given[buffer.name]))
        elif buffer.initial == "self_restoring":
            scratch_restored &= not laid.payload(buffer.name).any()
    return Run(
        completed=True,
        outputs=outputs,
        inputs_intact=inputs_intact,
        guards_intact=laid.margins_intact(),
        scratch_restored=scratch_restored,
        findings=(),
        unchecked=unchecked,
    )


def _ended(finding: Finding, unchecked: tuple[Finding, ...]) -> Run:
    absent = Finding(reason=Reason.CHECK_ABSENT, detail=_AFTER_FAULT)
    return not_completed(finding, (*unchecked, absent))
