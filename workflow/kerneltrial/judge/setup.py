"""What a judge holds through a stage: the rules, the cases, the oracle, the baseline; and whom it judges."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol as Interface

from kerneltrial.devices.device import Binary, Conditions, Run, Values
from kerneltrial.inputs.calls import Call
from kerneltrial.inputs.oracle import Oracle
from kerneltrial.inputs.resolve import resolve
from kerneltrial.records.build import Abi
from kerneltrial.records.case import Cases
from kerneltrial.records.contract import Contract
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.problem import Problem
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.qualification import BaselineError
from kerneltrial.records.sanitizer import Sanitized


class JudgeProblem(Problem):
    """Judging itself broke (a lost device, a baseline that fails): one line for a person."""


class RunsCalls(Interface):
    """The part of `devices.runner.Runner` that the judge needs."""

    def load(self, binary: Binary) -> None:
        """Load the binary that later calls run; raises `Refused`."""

    def run(self, call: Call, values: Values, conditions: Conditions) -> Run:
        """One call on fresh buffers; raises `Refused` or `DeviceProblem`."""


class Sanitizes(Interface):
    """Runs calls of a binary, each of a case and with its values, under every tool of compute-sanitizer."""

    def __call__(self, binary: Binary, asked: Sequence[tuple[str, Call, Values]]) -> Sanitized: ...


@dataclass
class Subject:
    """Something that can be run: a candidate, the baseline or a reference, each in a runner of its own.

    The binary is loaded at the first call. Several threads may ask; calls are made one at a time. `forward_only` is set
    where a block was seen to wait for one that comes later when blocks run backward.
    """

    binary: Binary
    plan: LaunchPlan
    abi: Abi
    runner: RunsCalls
    forward_only: bool = False
    _calls: dict[tuple[tuple[str, int], ...], Call] = field(default_factory=dict)
    _loaded: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, contract: Contract, dimensions: Mapping[str, int]) -> Call:
        """The plan in numbers for `dimensions`; raises `PlanProblem`."""
        key = tuple(sorted(dimensions.items()))
        if key not in self._calls:
            self._calls[key] = resolve(self.plan, contract, dimensions, self.abi)
        return self._calls[key]

    def run(self, call: Call, values: Values, conditions: Conditions) -> Run:
        """Run one call; raises `Refused` where this device cannot."""
        with self._lock:
            if not self._loaded:
                self.runner.load(self.binary)
                self._loaded = True
            return self.runner.run(call, values, conditions)


@dataclass
class JudgeSetup:
    """The rules and the trusted side. One for a whole stage, so that answers are worked out once.

    `folder` is where the cases' file lies (paths of `.npy` files are relative to it); `seed` draws boundary shapes.
    `baseline_errors` is what qualification measured, by case and draw; for other cases the baseline is run.
    """

    contract: Contract
    cases: Cases
    protocol: Protocol
    oracle: Oracle
    baseline: Subject
    folder: Path = Path()
    seed: int = 0
    baseline_errors: Mapping[str, tuple[tuple[BaselineError, ...], ...]] = field(default_factory=dict)
