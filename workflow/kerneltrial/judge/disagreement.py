"""Two runs of the same inputs disagree: on what do the results depend?"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kerneltrial.devices.device import Run
from kerneltrial.inputs.calls import Buffer, Call
from kerneltrial.judge.patterns import Mask, describe
from kerneltrial.judge.precision import item_bytes
from kerneltrial.records.reason import Finding, Reason

_REPEATS: Final = 3  # more than one, since what changes from call to call may come back after two


class Again(NamedTuple):
    """Further runs of the same inputs: under the first run's conditions; under the second's, with the newest value for
    every read; under the second's in the first's order."""

    first: Callable[[], Run]
    second_newest: Callable[[], Run]
    second_forward: Callable[[], Run]


def explain(call: Call, first: Run, second: Run, again: Again) -> Finding:
    """The reason why `first` (poison `nan`) and `second` (another poison, other addresses, another order) disagree.

    Where a repeat of the first run differs from it, the same memory gave two results. (The repeat comes after other
    calls, so a kernel that remembers them is told here too.)
    """
    untouched = poison_shows(call, first, second)
    if untouched is not None:
        return untouched
    where = differences(call, first, second)
    if second.older and again.second_newest().outputs == first.outputs:
        return Finding(
            reason=Reason.GLOBAL_RACE,
            detail=f"results hang on whether one block sees in time what another wrote: {second.older[0]}; {where}",
        )
    for _ in range(_REPEATS):
        repeated = again.first()
        if repeated.completed and repeated.outputs != first.outputs:
            return Finding(
                reason=Reason.NOT_DETERMINISTIC,
                detail="the same inputs in the same memory gave two results (a race, or state of earlier calls): "
                + differences(call, first, repeated),
            )
    if again.second_forward().outputs == first.outputs:
        return Finding(
            reason=Reason.NOT_DETERMINISTIC,
            detail="results hang on the order in which blocks or threads run (a race, or a sum as parts arrive): "
            + where,
        )
    return Finding(
        reason=Reason.OUTPUT_NOT_WRITTEN,
        detail="results depend on what lay in outputs, scratch or registers before they were written, on addresses, or "
        f"on whether one block sees in time what another wrote: {where}",
    )


def holds_poison(call: Call, run: Run) -> bool:
    """Whether an element of an output is the poison `nan` (all bits set): it may not have been written."""
    return any((_elements(run, buffer) == 0xFF).all(axis=-1).any() for buffer in _outputs(call))


def poison_shows(call: Call, first: Run, second: Run) -> Finding | None:
    """Where `first` still holds the poison `nan` (all bits set) and `second` something else: not written."""
    for buffer in _outputs(call):
        a, b = _elements(first, buffer), _elements(second, buffer)
        untouched = (a == 0xFF).all(axis=-1) & (a != b).any(axis=-1)
        if untouched.any():
            count = int(untouched.sum())
            return Finding(
                reason=Reason.OUTPUT_NOT_WRITTEN,
                detail=f"output {buffer.name}: {count} of {untouched.size} elements were not written "
                f"({describe(untouched)}): they hold the pattern that filled the memory before",
            )
    return None


def _outputs(call: Call) -> tuple[Buffer, ...]:
    return tuple(b for b in call.buffers if b.role in ("output", "inout"))


def _elements(run: Run, buffer: Buffer) -> NDArray[np.uint8]:
    """Bytes of an output, one more axis than the buffer has: bytes of an element."""
    return np.frombuffer(run.outputs[buffer.name], np.uint8).reshape((*buffer.shape, item_bytes(buffer.dtype)))


def differences(call: Call, first: Run, second: Run) -> str:
    """Words for where the outputs of two runs differ, byte for byte."""
    words = []
    for buffer in _outputs(call):
        differ: Mask = (_elements(first, buffer) != _elements(second, buffer)).any(axis=-1)
        if differ.any():
            words.append(f"output {buffer.name}, {int(differ.sum())} of {differ.size} elements ({describe(differ)})")
    return "; ".join(words)
