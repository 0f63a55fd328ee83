"""A card that is pretended, for the tests of benches that record on one: its samples follow from the steps of chains.

A latency is proportional to the steps of `chain`, or 24 us, with 0.03 % of noise from one process to the next and some
more from round to round.
"""

import os
from collections.abc import Sequence
from random import Random

from kerneltrial.devices import opening
from kerneltrial.devices.device import Binary, Samples, TimingRequest, Values
from kerneltrial.inputs.calls import Call, Scalar
from kerneltrial.records.device import Device

OWN, BY_ROUND = 3e-4, 1e-3


def install() -> None:
    """Called in the nursery: every device that is opened later is this one."""
    opening.open_device = lambda kind, arch: PretendedCard(kind, arch)


class PretendedCard:
    machine_code = None

    def __init__(self, kind: str, arch: str) -> None:
        self.device = Device(kind=kind, arch=arch, name="pretended", fingerprint={"pid": str(os.getpid())})

    def load(self, binary: Binary) -> None:
        raise AssertionError("nothing is loaded alone")

    def time(self, request: TimingRequest, values: Sequence[Values]) -> Samples:
        assert request.order == "abba"
        assert len(values) == 3
        random = Random(f"{request.seed} {request.candidate_call.launches}")
        own = random.gauss(0.0, OWN)
        a_us, b_us = _us(request.baseline_call), _us(request.candidate_call) * (1 + own)
        rows = {
            key: tuple(us * (1 + random.gauss(0.0, BY_ROUND)) for _ in range(request.rounds))
            for key, us in (("a", a_us), ("a2", a_us), ("b", b_us), ("b2", b_us))
        }
        return Samples(
            clock=request.clock, resolution_us=0.02, calls_per_sample=24, warm_us=rows, cold_us=rows, outputs=(),
            device_state={"cold_sweep_bytes": str(10**8)}, discarded=0,
        )  # fmt: skip


def _us(call: Call) -> float:
    launch = call.launches[0]
    steps = launch.parameters[-1]
    return steps.bits / 450 if launch.entry == "chain" and isinstance(steps, Scalar) else 24.0
