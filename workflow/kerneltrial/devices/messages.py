"""What goes between a runner and the device in its child, as msgpack; never pickle.

Arrays travel as dtype, shape and row-major little-endian bytes. bfloat16 keeps its name and travels as the uint16 bit
pattern that NumPy holds it in.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrial.devices.device import Binary, Conditions, Run, Samples, TimingRequest, Values
from kerneltrial.inputs.calls import Call
from kerneltrial.inputs.dtypes import numpy_dtype
from kerneltrial.inputs.large import PERIOD
from kerneltrial.records.counts import Counts
from kerneltrial.records.device import Device, DeviceKind
from kerneltrial.records.plan import DType
from kerneltrial.records.reason import Finding
from kerneltrial.records.record import Record
from kerneltrial.records.roofline import Ceilings

_LARGEST_BYTES = 2**31  # of one array in a message, which could hold twice as many


class Value(Record):
    """One array. `data` is all of it, or, of what is too large for a message, what it repeats."""

    dtype: DType
    shape: tuple[int, ...]
    data: memoryview


Packed = dict[str, Value]


class Start(Record):
    """Which device the child opens."""

    kind: DeviceKind
    arch: str


class Describe(Record, tag_field="ask", tag="describe"):
    """Open the device and say which it is."""


class Load(Record, tag_field="ask", tag="load"):
    """Load a binary in place of the one before; `code` is what an earlier child made of it."""

    binary: Binary
    code: dict[str, bytes] = {}


class GiveCode(Record, tag_field="ask", tag="code"):
    """Hand back the machine code that was made of what is loaded."""


class RunCall(Record, tag_field="ask", tag="run"):
    """Run one call of what is loaded."""

    call: Call
    values: Packed
    conditions: Conditions


class CountCall(Record, tag_field="ask", tag="count"):
    """Count one call of what is loaded."""

    call: Call
    values: Packed
    conditions: Conditions


class TimeCalls(Record, tag_field="ask", tag="time"):
    """Time a candidate beside the baseline, on one or more input sets."""

    request: TimingRequest
    values: tuple[Packed, ...]


class MeasureCeilings(Record, tag_field="ask", tag="ceilings"):
    """Measure what the device does at most."""


Request = Describe | Load | GiveCode | RunCall | CountCall | TimeCalls | MeasureCeilings


class Described(Record, tag_field="reply", tag="described"):
    """The device that was opened."""

    device: Device


class Done(Record, tag_field="reply", tag="done"):
    """It is loaded."""


class Code(Record, tag_field="reply", tag="code"):
    """Machine code by key, as far as it was not known."""

    made: dict[str, bytes]


class Ran(Record, tag_field="reply", tag="ran"):
    """What a call left behind."""

    run: Run


class Counted(Record, tag_field="reply", tag="counted"):
    """Counts of a call."""

    counts: Counts


class TimedCalls(Record, tag_field="reply", tag="timed"):
    """Raw samples."""

    samples: Samples


class MeasuredCeilings(Record, tag_field="reply", tag="ceilings"):
    """What the device does at most."""

    ceilings: Ceilings


class Refusal(Record, tag_field="reply", tag="refused"):
    """The device refuses the binary or the call."""

    finding: Finding


class Problem(Record, tag_field="reply", tag="problem"):
    """The device itself is at fault: one line for a person."""

    detail: str


class Broken(Record, tag_field="reply", tag="broken"):
    """The device's own code failed; `detail` is the end of its traceback."""

    detail: str


Reply = Described | Done | Code | Ran | Counted | TimedCalls | MeasuredCeilings | Refusal | Problem | Broken


def pack(call: Call, values: Values) -> Packed:
    """Pack the values that a call is given; others are left behind.

    Raises
    ------
    ValueError
        A value is missing, or its shape or dtype is not the buffer's.
    """
    packed: Packed = {}
    for buffer in call.buffers:
        if buffer.initial != "given":
            continue
        if buffer.name not in values:
            raise ValueError(
                f"no value for the buffer {buffer.name!r}; given are {', '.join(sorted(values)) or 'none'}"
            )
        array = np.asarray(values[buffer.name])
        if array.shape != buffer.shape or array.dtype != numpy_dtype(buffer.dtype):
            raise ValueError(
                f"{buffer.name}: value is {array.dtype} {list(array.shape)}, "
                f"the buffer is {buffer.dtype} {list(buffer.shape)}"
            )
        packed[buffer.name] = Value(dtype=buffer.dtype, shape=array.shape, data=_bytes(_repeated(buffer.name, array)))
    return packed


def unpack(packed: Mapping[str, Value]) -> dict[str, NDArray[Any]]:
    """Return read-only arrays over the message's bytes."""
    return {name: _whole(value) for name, value in packed.items()}


def _whole(value: Value) -> NDArray[Any]:
    found = np.frombuffer(value.data, dtype=numpy_dtype(value.dtype))
    if found.size == math.prod(value.shape):
        return found.reshape(value.shape)
    whole = np.resize(found, value.shape)
    whole.flags.writeable = False
    return whole


def _repeated(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """The array, or what it repeats, where it is too large for a message; raise ValueError where it does not repeat."""
    if array.nbytes <= _LARGEST_BYTES:
        return array
    bits = array.reshape(-1).view(f"u{array.itemsize}")
    if not np.array_equal(bits[PERIOD:], bits[:-PERIOD]):
        raise ValueError(f"{name}: {array.nbytes} bytes that do not repeat are too many for one message")
    return array.reshape(-1)[:PERIOD]


def _bytes(array: NDArray[Any]) -> memoryview:
    """Row-major bytes, without a copy where the array is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
