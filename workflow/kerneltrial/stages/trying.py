"""What the propose stage hands to an external program: its prompt, and a judge for its tries on the public cases."""

import contextlib
from collections.abc import Sequence
from math import exp
from pathlib import Path
from statistics import median

from kerneltrial.build.preloading import preload
from kerneltrial.devices.device import Refused, Samples
from kerneltrial.judge.validation import Judge
from kerneltrial.measure.score import score
from kerneltrial.measure.statistics import geometric_mean, round_log_ratios
from kerneltrial.propose.command.outside import Program
from kerneltrial.propose.command.run import Run, Runs
from kerneltrial.propose.history import Iteration
from kerneltrial.propose.prompt.prompt import program_text, prompt
from kerneltrial.propose.proposer import Draft, TriedDraft, candidate_of
from kerneltrial.records.build import Built, NotBuilt
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.lock import Lock
from kerneltrial.records.proposal import TryRight, TryWrong, Unusable
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.validation import Invalid, Unchecked
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.stages import card
from kerneltrial.stages.compiling import open_builder
from kerneltrial.stages.ground import Ground, binary_of, ground
from kerneltrial.stages.job import Job
from kerneltrial.stages.measuring import Asked, Kernel, counts_of, performance_cases, samples_of
from kerneltrial.stages.modelling import asked_again, known

RUNS = "runs"


def ask_program(job: Job, lock: Lock, iterations: Sequence[Iteration]) -> list[Draft | Unusable | TriedDraft]:
    """Run the program once a candidate; its tries stand before what it left."""
    program = Program(lock.command, _files(job), lock.languages, Runs(job.folder / RUNS))
    count = lock.candidates_per_iteration
    found: list[Draft | Unusable | TriedDraft] = []
    with contextlib.ExitStack() as opened:
        bench = Bench(job, lock, opened)
        again = asked_again(job)
        first = again.times * count - 1 if again else -1
        for sample in range(1, count + 1):
            asked = prompt(known(job, lock), iterations, sample)
            text = f"{asked.whole}\n{program_text(lock)}"
            run: Run = program.propose(text, first + sample, bench.judge)
            found += [*run.tries, program.draft(run, asked.parents)]
    return found


class Bench:
    """Compiles, validates and measures drafts; compiler and device are opened at the first."""

    def __init__(self, job: Job, lock: Lock, opened: contextlib.ExitStack) -> None:
        self._job = job
        self._lock = lock
        self._opened = opened
        self._ground: Ground | None = None
        self._compilers: Nursery | None = None

    def judge(self, draft: Draft) -> TryRight | TryWrong:
        """The outcome of a draft: what the stages would say of it on the public cases."""
        candidate = candidate_of(draft)
        built = self._built(candidate, draft.source)
        if isinstance(built, NotBuilt):
            return TryWrong(stage="build", reason=built.reason, detail=built.detail)
        if self._ground is None:
            self._ground = self._opened.enter_context(ground(self._job, shelved=True))
        with self._card():
            return self._run(self._ground, candidate, built)

    def _built(self, candidate: Candidate, source: bytes) -> Built | NotBuilt:
        if self._compilers is None:
            self._compilers = self._opened.enter_context(Nursery(preload(set(self._lock.languages))))
        builder = open_builder(self._job, self._lock, self._compilers)
        return builder.build(candidate, source, self._job.objects)

    def _card(self) -> contextlib.AbstractContextManager[None]:
        on_card = self._lock.device.kind == "cuda"
        return card.held("time") if on_card else contextlib.nullcontext()

    def _run(self, g: Ground, candidate: Candidate, built: Built) -> TryRight | TryWrong:
        qualification = self._job.record("qualify", Qualification)
        with g.runner() as own, g.runner() as runner:
            judge = Judge(g.setup(g.baseline(qualification, own), qualification))
            verdict = judge.judge_candidate(built, binary_of(built, self._job.objects), candidate.plan, runner)
            if isinstance(verdict, Invalid | Unchecked):
                return TryWrong(stage="validate", reason=verdict.reason, detail=verdict.detail)
            baseline = Kernel(built=qualification.baseline, plan=qualification.baseline_plan)
            try:
                return _measured(g, baseline, Kernel(built=built, plan=candidate.plan), judge)
            except Refused as refused:
                return TryWrong(stage="time", reason=refused.finding.reason, detail=refused.finding.detail)


def _measured(g: Ground, baseline: Kernel, draft: Kernel, judge: Judge) -> TryRight | TryWrong:
    """The ratio that the stage `time` would give; the same measurements, stored once."""
    cases = performance_cases(g)
    if g.lock.device.kind == "cpu":
        own, base = counts_of(g, draft, cases), counts_of(g, baseline, cases)
        ratios = [score(base[name].value) / score(own[name].value) for name in own]
        return TryRight(ratio=geometric_mean(ratios))
    found = samples_of(g, (baseline, draft), cases, judge.answers, Asked())
    faults = [fault for stored in found.values() for fault in stored.value.faults]
    if faults:
        return TryWrong(stage="time", reason=faults[0].reason, detail=faults[0].detail)
    return TryRight(ratio=geometric_mean([_speedup(stored.value.samples) for stored in found.values()]))


def _speedup(samples: Samples) -> float:
    return exp(median(round_log_ratios(samples)))


def _files(job: Job) -> dict[str, bytes]:
    """The program's files by their path within its folder."""
    paths = job.sources["program"]
    folder = str(job.given["program"])
    return {str(Path(path).relative_to(folder)): (job.root / path).read_bytes() for path in paths}
