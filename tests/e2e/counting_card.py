"""A card that is pretended: kernels run on the `cpu` device, and a call takes as long as its score says.

So a trial with a clock can be driven from its lock to its report where there is no card. Its figures mean nothing.
"""

from collections.abc import Sequence
from random import Random

from kerneltrial.devices import opening
from kerneltrial.devices.cpu.device import LoadedCpu, open_cpu
from kerneltrial.devices.device import Binary, Conditions, Refused, Samples, TimingRequest, Values
from kerneltrial.inputs.calls import Call
from kerneltrial.measure.score import score
from kerneltrial.records.device import Device
from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.roofline import Ceilings

CLOCKS_PER_US = 1980.0
NOISE = 1e-4
CARD = Device(kind="cuda", arch="sm_90", name="pretended card", fingerprint={"multiprocessors": "132"})


def install() -> None:
    """Called in the nursery: every device that is opened later is this one."""
    opening.open_device = lambda kind, arch: CountingCard()


class CountingCard:
    """Implements `devices.device.Opened`."""

    machine_code = None
    device = CARD

    def __init__(self) -> None:
        self._cpu = open_cpu()

    def load(self, binary: Binary) -> LoadedCpu:
        return self._cpu.load(binary)

    def ceilings(self) -> Ceilings:
        raise Refused(Finding(reason=Reason.NOT_MEASURED, detail="it is pretended"))

    def time(self, request: TimingRequest, values: Sequence[Values]) -> Samples:
        candidate = self.load(request.candidate)
        a_us = _us(self.load(request.baseline), request.baseline_call, values[0])
        b_us = _us(candidate, request.candidate_call, values[0])
        names = {"a": a_us, "a2": a_us, "b": b_us} | ({"b2": b_us} if request.order == "abba" else {})
        random = Random(request.seed)
        rows = {
            name: tuple(us * (1 + random.gauss(0.0, NOISE)) for _ in range(request.rounds))
            for name, us in names.items()
        }
        plain = Conditions(poison="plain")
        return Samples(
            clock="graph" if request.clock == "auto" else request.clock,
            resolution_us=0.001,
            calls_per_sample=1,
            warm_us=rows,
            cold_us=rows,
            outputs=tuple(candidate.run(request.candidate_call, one, plain).outputs for one in values),
            device_state={"cold_sweep_bytes": str(10**8)},
            discarded=0,
        )


def _us(loaded: LoadedCpu, call: Call, values: Values) -> float:
    return score(loaded.count(call, values, Conditions(poison="plain"))) / CLOCKS_PER_US
