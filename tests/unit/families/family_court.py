"""One kernel family: its files as `trials/NAME.yaml` names them, and a judge that runs its kernels on the `cpu` device.

Everything runs in this process: the sources are this repository's own, so that no sandbox is needed here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from kerneltrial.build.entries import entries
from kerneltrial.build.messages import Compiled
from kerneltrial.build.nvrtc import compile_source
from kerneltrial.devices.cpu.device import open_cpu
from kerneltrial.devices.device import Binary, Conditions, Loaded, Run, Values
from kerneltrial.inputs.calls import Call
from kerneltrial.inputs.cases import check_cases, read_cases
from kerneltrial.inputs.config import Config, read
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.holdout import check_holdout, read_holdout
from kerneltrial.inputs.oracle import load
from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.inputs.resolve import parameter_sizes
from kerneltrial.judge.qualification import Qualified, qualify
from kerneltrial.judge.screen import screen
from kerneltrial.judge.setup import JudgeSetup, Subject
from kerneltrial.judge.validation import Judge, ValidationOutcome, has_several_launches
from kerneltrial.propose.search.space import Space, read_space
from kerneltrial.records.case import Case, Cases
from kerneltrial.records.contract import Contract
from kerneltrial.records.device import Device
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.protocol import Protocol
from kerneltrial.store.canonical import digest

Checks = Literal["all", "bounds"]

NO_CARD = Device(kind="cpu", arch="sm_80", name="none", fingerprint={})
CLONE = Path(__file__).resolve().parents[3]
TRIALS = CLONE / "trials"


def names() -> list[str]:
    """Every family that has a trial."""
    return sorted(path.stem for path in TRIALS.glob("*.yaml"))


class Direct:
    """Runs calls on the `cpu` device of this process (`judge.setup.RunsCalls`).

    `checks`: the same in every run, whatever the judge asks for; a kernel is then compiled once. None: as it asks.
    """

    def __init__(self, checks: Checks | None) -> None:
        self._checks = checks
        self._loaded: Loaded | None = None

    def load(self, binary: Binary) -> None:
        self._loaded = open_cpu().load(binary)

    def run(self, call: Call, values: Values, conditions: Conditions) -> Run:
        assert self._loaded is not None
        if self._checks is not None:
            conditions = replace(conditions, checks=self._checks)
        return self._loaded.run(call, values, conditions)


@dataclass(frozen=True)
class Family:
    """A family by name; its files are read when they are asked for. `checks`: see `Direct`.

    `root` and `file`: where its paths start, and its config there; this clone and its `trials/` where nothing is said.
    """

    name: str
    checks: Checks | None = None
    root: Path = CLONE
    file: Path | None = None

    @cached_property
    def config(self) -> Config:
        return read(self.file or TRIALS / f"{self.name}.yaml", {}, self.root)

    @cached_property
    def contract(self) -> Contract:
        return read_contract(self.root / self.config.contract)

    @cached_property
    def cases(self) -> Cases:
        """The cases, checked against the contract; so is the holdout's domain."""
        path = self.root / self.config.cases
        cases = read_cases(path)
        check_cases(cases, self.contract, path)
        holdout = self.root / self.config.holdout
        check_holdout(read_holdout(holdout), self.contract, holdout)
        return cases

    @cached_property
    def space(self) -> Space:
        """As the `cpu` device can run it: without what one architecture alone has."""
        return read_space(self.root / self.config.space, NO_CARD)

    @property
    def small(self) -> Cases:
        """The cases that are there for correctness alone."""
        return Cases(cases=tuple(case for case in self.cases.cases if case.kind == "correctness"))

    def baseline(self) -> Subject:
        path = self.root / self.config.baseline
        return self.subject(path.read_bytes(), read_plan(plan_path(path)))

    def reference(self) -> Subject | None:
        if not self.config.reference:
            return None
        path = self.root / self.config.reference
        return self.subject(path.read_bytes(), read_plan(plan_path(path)))

    def configuration(self, parameters: Mapping[str, int]) -> Subject:
        return self.subject(self.space.source(parameters), self.space.plan(parameters))

    def subject(self, source: bytes, plan: LaunchPlan) -> Subject:
        """Compile a source to PTX alone (machine code takes as long again), and look at it as a trial does."""
        options = ("--gpu-architecture=compute_80", "--std=c++17", "--generate-line-info", *self.contract.options)
        reply = compile_source(source, options)
        assert isinstance(reply, Compiled), reply
        ptx = reply.ptx.decode()
        there, wanted = entries(ptx), parameter_sizes(plan, self.contract, "pointer")
        assert {name: there.get(name) for name in wanted} == wanted
        seen = screen(ptx, Protocol().screening, several_launches=has_several_launches(plan))
        assert seen == (), seen
        return Subject(binary=Binary(ptx=ptx, cubin=b""), plan=plan, abi="pointer", runner=Direct(self.checks))

    def judge(self, cases: Cases, boundary_shapes: int) -> Judge:
        setup = JudgeSetup(
            contract=self.contract,
            cases=cases,
            protocol=Protocol(boundary_shapes=boundary_shapes),
            oracle=load(self.root / self.config.oracle),
            baseline=self.baseline(),
            folder=(self.root / self.config.cases).parent,
            seed=self.config.seed,
        )
        return Judge(setup)

    def qualified(self, judge: Judge) -> Qualified:
        """Qualification as the trial makes it; raises `QualificationProblem`."""
        return qualify(judge, digest(b"baseline"), self.reference())

    def verdict(self, judge: Judge, parameters: Mapping[str, int], cases: Sequence[Case] = ()) -> ValidationOutcome:
        """The judge's verdict on one configuration of the space."""
        return judge.judge_subject(
            digest(repr(parameters).encode()), self.configuration(parameters), cases or judge.cases
        )


def folder_court(folder: Path, name: str, checks: Checks | None = "bounds") -> Family:
    """The same for a trial in a folder of its own."""
    return Family(name, checks, folder, folder / "config.yaml")
