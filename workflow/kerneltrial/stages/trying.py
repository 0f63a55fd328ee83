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
from kerneltrial.measure.statistics import geometric_mean, latency_us, round_log_ratios
from kerneltrial.propose.command.outside import Judged, Program
from kerneltrial.propose.command.run import Run, Runs
from kerneltrial.propose.history import Iteration
from kerneltrial.propose.prompt.learnt import LOG_BYTES
from kerneltrial.propose.prompt.prompt import program_text, prompt
from kerneltrial.propose.prompt.scrub import scrub
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
from kerneltrial.stages.modelling import asked_again, known, note_of
from kerneltrial.store.canonical import builtins

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
        self._note = note_of(job)

    def judge(self, draft: Draft) -> Judged:
        """The outcome of a draft: what the stages would say of it on the public cases, with what a next draft needs.

        It is journalled at once: of a run that is killed nothing else remains of its tries.
        """
        candidate = candidate_of(draft)
        judged = self._judged(candidate, draft)
        self._note({"event": "tried", "candidate": candidate.id, "outcome": builtins(judged.outcome)})
        return judged

    def _judged(self, candidate: Candidate, draft: Draft) -> Judged:
        built = self._built(candidate, draft.source)
        if isinstance(built, NotBuilt):
            outcome = TryWrong(stage="build", reason=built.reason, detail=built.detail)
            return Judged(outcome, {"log": _log(self._job.objects.get(built.log))})
        if self._ground is None:
            self._ground = self._opened.enter_context(ground(self._job, shelved=True))
        with self._card():
            judged = self._run(self._ground, candidate, built)
        return Judged(judged.outcome, {**judged.told, "entries": builtins(list(built.entries))})

    def _built(self, candidate: Candidate, source: bytes) -> Built | NotBuilt:
        if self._compilers is None:
            self._compilers = self._opened.enter_context(Nursery(preload(set(self._lock.languages))))
        builder = open_builder(self._job, self._lock, self._compilers)
        return builder.build(candidate, source, self._job.objects)

    def _card(self) -> contextlib.AbstractContextManager[None]:
        on_card = self._lock.device.kind == "cuda"
        return card.held("time") if on_card else contextlib.nullcontext()

    def _run(self, g: Ground, candidate: Candidate, built: Built) -> Judged:
        qualification = self._job.record("qualify", Qualification)
        with g.runner() as own, g.runner() as runner:
            judge = Judge(g.setup(g.baseline(qualification, own), qualification))
            verdict = judge.judge_candidate(built, binary_of(built, self._job.objects), candidate.plan, runner)
            if isinstance(verdict, Invalid | Unchecked):
                return Judged(TryWrong(stage="validate", reason=verdict.reason, detail=verdict.detail))
            baseline = Kernel(built=qualification.baseline, plan=qualification.baseline_plan)
            try:
                return _measured(g, baseline, Kernel(built=built, plan=candidate.plan), judge)
            except Refused as refused:
                finding = refused.finding
                return Judged(TryWrong(stage="time", reason=finding.reason, detail=finding.detail))


def _measured(g: Ground, baseline: Kernel, draft: Kernel, judge: Judge) -> Judged:
    """The ratio that the stage `time` would give, and each case's; the same measurements, stored once."""
    cases = performance_cases(g)
    if g.lock.device.kind == "cpu":
        own, base = counts_of(g, draft, cases), counts_of(g, baseline, cases)
        scores = {name: (score(own[name].value), score(base[name].value)) for name in own}
        figures = {
            name: {"ratio": theirs / mine, "score": mine, "baseline_score": theirs}
            for name, (mine, theirs) in scores.items()
        }
    else:
        found = samples_of(g, (baseline, draft), cases, judge.answers, Asked())
        faults = [fault for stored in found.values() for fault in stored.value.faults]
        if faults:
            return Judged(TryWrong(stage="time", reason=faults[0].reason, detail=faults[0].detail))
        figures = {name: _latency(stored.value.samples) for name, stored in found.items()}
    outcome = TryRight(ratio=geometric_mean([figure["ratio"] for figure in figures.values()]))
    return Judged(outcome, {"cases": figures})


def _latency(samples: Samples) -> dict[str, float]:
    """Warm microseconds a call, and the speedup."""
    return {
        "ratio": exp(median(round_log_ratios(samples))),
        "us": latency_us(samples, ("b", "b2")),
        "baseline_us": latency_us(samples, ("a", "a2")),
    }


def _log(content: bytes) -> str:
    """A compiler's output for a program: the first error stands at its beginning."""
    return scrub(content[:LOG_BYTES].decode(errors="replace"))


def _files(job: Job) -> dict[str, bytes]:
    """The program's files by their path within its folder."""
    paths = job.sources["program"]
    folder = str(job.given["program"])
    return {str(Path(path).relative_to(folder)): (job.root / path).read_bytes() for path in paths}
