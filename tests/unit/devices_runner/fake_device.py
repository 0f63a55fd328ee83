"""A device for the tests of the runner: its binary's PTX says what a call does."""

import ctypes
import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from kerneltrial.devices import opening
from kerneltrial.devices.device import Binary, Conditions, DeviceProblem, Refused, Run, Samples, TimingRequest, Values
from kerneltrial.inputs.calls import Call
from kerneltrial.records.counts import Counts
from kerneltrial.records.device import Device
from kerneltrial.records.reason import Finding, Reason


def install() -> None:
    """Called in the nursery: every device that is opened later is this one."""
    opening.open_device = lambda kind, arch: FakeDevice(kind, arch)


class FakeDevice:
    machine_code = None

    def __init__(self, kind: str, arch: str) -> None:
        if arch == "sm_00":
            raise DeviceProblem("fake: no card of that kind")
        self.device = Device(kind=kind, arch=arch, name="fake", fingerprint={"pid": str(os.getpid())})

    def load(self, binary: Binary) -> "FakeLoaded":
        if binary.ptx == "refuse":
            raise Refused(Finding(reason=Reason.UNSUPPORTED_INSTRUCTION, detail="frob.f32"))
        if binary.ptx == "die at load":
            ctypes.string_at(0)
        return FakeLoaded(binary.ptx)

    def time(self, request: TimingRequest, values: Sequence[Values]) -> Samples:
        return Samples(
            clock=request.clock,
            resolution_us=0.5,
            calls_per_sample=1,
            warm_us={"a": tuple(float(one["x"].sum()) for one in values)},
            cold_us={},
            outputs=({"y": b"z"},),
            device_state={},
            discarded=0,
        )


class FakeLoaded:
    def __init__(self, what: str) -> None:
        self.what = what

    def run(self, call: Call, values: Values, conditions: Conditions) -> Run:
        match self.what:
            case "die":
                ctypes.string_at(0)
            case "hang":
                time.sleep(600)
            case "loop":
                while True:
                    pass
            case "eat":
                held: list[Any] = []
                while True:
                    held.append(bytearray(1 << 26))
            case "bug":
                raise KeyError("an instruction that the translator forgot")
            case "fault":
                return _run(False, {}, (Finding(reason=Reason.DEVICE_FAULT, detail="illegal address"),))
            case "lost":
                raise DeviceProblem("fake: the card has fallen off the bus")
        doubled = {name: (array + array).astype(array.dtype).tobytes() for name, array in values.items()}
        told = {"told": f"{conditions.poison} {sorted(map(str, (a.dtype for a in values.values())))}".encode()}
        return _run(True, doubled | told, ())

    def count(self, call: Call, values: Values, conditions: Conditions) -> Counts:
        if self.what == "die":
            os._exit(3)
        return Counts(
            instructions={"fma": int(np.size(values["x"]))},
            global_transactions=1,
            shared_accesses=0,
            shared_conflicts=0,
            barriers=0,
            blocks=1,
            threads_per_block=32,
            shared_bytes=0,
        )


def _run(completed: bool, outputs: dict[str, bytes], findings: tuple[Finding, ...]) -> Run:
    return Run(
        completed=completed,
        outputs=outputs,
        inputs_intact=True,
        guards_intact=True,
        scratch_restored=True,
        findings=findings,
        unchecked=(),
    )
