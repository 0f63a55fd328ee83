"""The one interface of devices: load a binary, run a call, time or count it.

A device object lives in a runner: a limited child process that serves one candidate (`devices.runner`). It gets
binaries and input values; it never sees an oracle's answer.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from kerneltrial.devices.machine_code import MachineCode
from kerneltrial.inputs.calls import Call, Product
from kerneltrial.records.counts import Counts
from kerneltrial.records.device import Device
from kerneltrial.records.problem import Problem
from kerneltrial.records.reason import Finding
from kerneltrial.records.record import Record
from kerneltrial.records.roofline import Ceilings

Values = Mapping[str, NDArray[np.generic]]
Poison = Literal["nan", "huge", "plain"]


Order = Literal["forward", "backward", "shuffled"]


class Binary(Record):
    """What is loaded: PTX text (NUL-free UTF-8), and machine code where there is some (empty bytes where not)."""

    ptx: str
    cubin: bytes


class Conditions(Record):
    """How one call is run.

    `poison` fills outputs, uninitialised scratch and margins: `nan` is all bits set, `huge` a large finite pattern,
    `plain` ordinary numbers, other ones at every element, drawn from `seed` (`devices.poison` says how).
    `offset_bytes` is what addresses are a multiple of where it is not 0: each buffer is then shifted from its usual
    address by a multiple of its own, drawn from `seed` (`devices.placement`). `fence` wants each buffer in pages of its
    own between pages that nobody may touch, at the start or at the end of them, and inputs that can only be read.
    `checks` is `all` or `bounds`, as the asker then says; a device that can do less says so in `Run.unchecked`.
    `budget_instructions` bounds the executed thread instructions on `cpu`. `order` is the one in which a device that
    runs blocks and threads one after the other takes them (`shuffled`: drawn from `seed`); a card takes its own.
    `newest` wants each strong read to get the newest value, where `cpu` would give some an older one (ADR 45).
    """

    poison: Poison
    offset_bytes: int = 0
    checks: Literal["all", "bounds"] = "all"
    budget_instructions: int = 2_000_000_000
    seed: int = 0
    order: Order = "forward"
    fence: Literal["none", "start", "end"] = "none"
    newest: bool = False


class Run(Record):
    """What one call left behind.

    `outputs` holds the bytes of outputs and inouts by name (row-major). `findings` are faults of the candidate, each
    with thread, block and source line where the device knows them; `unchecked` names what could not be looked at.
    `inputs_intact`, `guards_intact`, `scratch_restored`: input bytes, margins around every buffer, and
    self-restoring scratch are as they should be. When a fault ended the call, `completed` is false and outputs may be
    partial. `older` says of strong reads that nothing orders, one a launch, that they got an older value: no fault by
    itself.
    """

    completed: bool
    outputs: dict[str, bytes]
    inputs_intact: bool
    guards_intact: bool
    scratch_restored: bool
    findings: tuple[Finding, ...]
    unchecked: tuple[Finding, ...]
    older: tuple[str, ...] = ()


def not_completed(finding: Finding, unchecked: tuple[Finding, ...]) -> Run:
    """What is said of a call that a fault ended, or that was never made: nothing was seen to be broken, as nothing was
    looked at; `unchecked` says so.
    """
    return Run(
        completed=False,
        outputs={},
        inputs_intact=True,
        guards_intact=True,
        scratch_restored=True,
        findings=(finding,),
        unchecked=unchecked,
    )


class TimingRequest(Record):
    """Baseline A, the same again A', and one candidate B, interleaved in random order within rounds.

    `clock` is the protocol's choice; `seed` orders the rounds; input sets are rotated from call to call. `order` is
    that of one round: `random`, or `abba` (A B B A' or B A A' B), in which a steady drift falls out. `vendors` are
    timed in the same rounds, where their library is there; `energy` asks for the energy of a call, after the rounds.
    `warm` names buffers of the contract that lie in the L2 when a call starts while nothing else does, for a third
    reading beside the warm and the cold; none for no such reading.
    """

    baseline: Binary
    baseline_call: Call
    candidate: Binary
    candidate_call: Call
    rounds: int
    clock: str
    seed: int
    order: Literal["random", "abba"] = "random"
    vendors: tuple[Product, ...] = ()
    energy: bool = False
    warm: tuple[str, ...] = ()


class SetAside(Record):
    """The readings of a round that fell out, in microseconds by place as in `Samples`, and what it fell out for."""

    why: str
    warm_us: dict[str, float]
    cold_us: dict[str, float]


class Samples(Record):
    """Latencies in microseconds, one a round, by `a`, `a2` and `b` (and `b2` where the order is `abba`).

    Each is the span of one call of the plan. A vendor's are by its name, such as `cublas`; why one could not be timed
    is in `vendors_absent`, by its name.
    `stated_us` are those of calls that find the buffers of `TimingRequest.warm` in the L2, where some were named.
    `throughput_us` are microseconds of a call among many in a graph, by `a` and `b`, where one call is so short that
    the gap to the next one matters; else nothing.
    `energy_mj` are millijoules of one call by `a` and `b`, one a block; `energy_absent` says why there are none.
    `outputs` are the bytes that the candidate's timed launches left, one mapping an input set. `discarded` rounds fell
    out for a hardware or thermal slowdown or a foreign process; what they read is kept in `set_aside`, of which no
    figure is made.
    """

    clock: str
    resolution_us: float
    calls_per_sample: int
    warm_us: dict[str, tuple[float, ...]]
    cold_us: dict[str, tuple[float, ...]]
    outputs: tuple[dict[str, bytes], ...]
    device_state: dict[str, str]
    discarded: int
    vendors_absent: dict[str, str] = msgspec.field(default_factory=dict)
    throughput_us: dict[str, float] = msgspec.field(default_factory=dict)
    energy_mj: dict[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    energy_absent: str = "not asked for"
    stated_us: dict[str, tuple[float, ...]] | msgspec.UnsetType = msgspec.UNSET
    set_aside: tuple[SetAside, ...] | msgspec.UnsetType = msgspec.UNSET


class Loaded(Protocol):
    """A binary on a device."""

    def run(self, call: Call, values: Values, conditions: Conditions) -> Run:
        """One call on fresh buffers. `values` holds every buffer whose `initial` is `given`."""

    def count(self, call: Call, values: Values, conditions: Conditions) -> Counts:
        """Counts of one call; raises `Unsupported` on a device that does not count."""


class Opened(Protocol):
    """A device, open in this process."""

    @property
    def device(self) -> Device: ...

    @property
    def machine_code(self) -> MachineCode | None:
        """Code that it makes of binaries; None where it makes none. Of what is loaded next, until it is restarted."""

    def load(self, binary: Binary) -> Loaded:
        """Raise `Refused` where the binary cannot run here."""

    def time(self, request: TimingRequest, values: Sequence[Values]) -> Samples:
        """Time a candidate beside the baseline; raises `Refused` (not_measured) on a device without a clock."""

    def ceilings(self) -> Ceilings:
        """Measure what the device does at most; raises `Refused` (not_measured) on a device without a clock."""


class Refused(Exception):
    """The binary, or a call of it, cannot run on this device: `finding` says why, with its class."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(f"{finding.reason.value}: {finding.detail}")
        self.finding = finding


class DeviceProblem(Problem):
    """The device itself is at fault (absent, lost, out of memory, driver too old): one line for a person."""
