"""What judging and timing stages stand on: the nursery, runners, binaries, the baseline."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TypeVar

from kerneltrial.devices.device import Binary, Conditions, Run, Values
from kerneltrial.devices.preloading import preload
from kerneltrial.devices.runner import Runner
from kerneltrial.inputs import oracle
from kerneltrial.inputs.calls import Call
from kerneltrial.judge.setup import JudgeSetup, RunsCalls, Subject
from kerneltrial.records.build import Build, Built, Cubin
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.lock import Lock
from kerneltrial.records.proposal import Proposal
from kerneltrial.records.qualification import Qualification
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.stages.code_folder import CodeFolder, machine_code_of
from kerneltrial.stages.job import Job
from kerneltrial.store.objects import Objects

_CLOSERS: Final = 16  # at once

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Ground:
    """The lock, an open nursery, and how to get runners and binaries. One for a stage.

    `shelf` is where machine code lies between stages, or None, where all code is compiled here and now.
    """

    job: Job
    lock: Lock
    nursery: Nursery
    shelf: CodeFolder | None = None

    def runner(self) -> Runner:
        """A fresh child that opens the trial's device; one candidate a runner."""
        device = self.lock.device
        call_s = float(self.lock.protocol.timeout_s)
        return Runner(self.nursery, device.kind, arch=device.arch, call_s=call_s, locked=device, shelf=self.shelf)

    def setup(self, baseline: Subject, qualification: Qualification | None = None) -> JudgeSetup:
        """The judge's rules; the oracle is loaded here, in the stage's own process.

        With `qualification`, the baseline's errors on the trial's own cases are taken from there.
        """
        return JudgeSetup(
            contract=self.lock.contract,
            cases=self.lock.cases,
            protocol=self.lock.protocol,
            oracle=oracle.load(self.job.source("oracle")),
            baseline=baseline,
            folder=self.job.source("cases").parent,
            seed=self.lock.seed,
            baseline_errors={} if qualification is None else qualification.baseline_errors,
        )

    def baseline(self, qualification: Qualification, runner: RunsCalls) -> Subject:
        """The baseline in a runner of its own."""
        built = qualification.baseline
        return Subject(
            binary=binary_of(built, self.job.objects), plan=qualification.baseline_plan, abi=built.abi, runner=runner
        )


class Turns:
    """One runner for several threads: they take turns, and the binary is loaded once."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._lock = threading.Lock()
        self._loaded: Binary | None = None

    def load(self, binary: Binary) -> None:
        with self._lock:
            if self._loaded != binary:
                self._runner.load(binary)
                self._loaded = binary

    def run(self, call: Call, values: Values, conditions: Conditions) -> Run:
        with self._lock:
            return self._runner.run(call, values, conditions)


@contextlib.contextmanager
def ground(job: Job, *, shelved: bool = False) -> Iterator[Ground]:
    """The nursery that the job brings, or one of its own, opened before anything secret is read.

    With `shelved`, machine code of earlier stages of this trial is taken and kept. What decides is never `shelved`: the
    confirmation, and whoever judges another's evidence, compile everything anew.
    """
    lock = job.record("lock", Lock)
    with contextlib.ExitStack() as own:
        nursery = job.nursery or own.enter_context(Nursery(preload(lock.device.kind)))
        shelf = None
        if shelved and lock.device.kind == "cpu":
            shelf = machine_code_of(job)
        yield Ground(job, lock, nursery, shelf)


def binary_of(built: Built, objects: Objects) -> Binary:
    """A build's binary, read back by digest."""
    cubin = objects.get(built.cubin.digest) if isinstance(built.cubin, Cubin) else b""
    return Binary(ptx=objects.get(built.ptx).decode(), cubin=cubin)


def candidates_and_builds(job: Job) -> list[tuple[Candidate, Built | None]]:
    """This iteration's candidates in order, each with its build, or None where it was not built."""
    builds = {b.candidate: b for b in job.record("build", Build).candidates}
    found = []
    for candidate in job.record("propose", Proposal).candidates:
        build = builds[candidate.id]
        found.append((candidate, build if isinstance(build, Built) else None))
    return found


class Closing:
    """Closes runners side by side and beside what goes on, as a GPU takes a while over each; its end waits for all."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_CLOSERS)
        self._closed: list[Future[None]] = []

    def soon(self, *runners: Runner) -> None:
        """Have runners closed that nothing more is asked of."""
        self._closed += [self._pool.submit(runner.close) for runner in runners]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        if kind is None:
            for one in self._closed:
                one.result()


def in_parallel(work: Callable[[T], R], items: Sequence[T], most: int) -> list[R]:
    """Results in order of `items`, worked out by up to `most` threads, and no more than there are cores."""
    workers = max(1, min(most, len(items), len(os.sched_getaffinity(0))))
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))
