"""Qualify: each case can fail someone, the baseline passes, the oracle has a second opinion."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kerneltrial.build import given
from kerneltrial.build.nvrtc import NAME as CANDIDATE_NAME
from kerneltrial.build.preloading import preload
from kerneltrial.build.problem import BuildProblem
from kerneltrial.devices.cuda.torch_baselines import Torch
from kerneltrial.devices.device import Refused
from kerneltrial.devices.runner import Runner
from kerneltrial.inputs.plans import plan_path, read_plan
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.judge.answers import Answers
from kerneltrial.judge.qualification import Qualified, qualify
from kerneltrial.judge.setup import Subject
from kerneltrial.judge.validation import Judge
from kerneltrial.measure.roofline import floor_of
from kerneltrial.measure.score import score
from kerneltrial.measure.statistics import latency_us
from kerneltrial.propose.proposer import identified
from kerneltrial.records.build import Built, NotBuilt
from kerneltrial.records.lock import Lock
from kerneltrial.records.qualification import BaselineCounts, BaselineLatency, Qualification
from kerneltrial.records.reason import Reason
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.stages.application import tried
from kerneltrial.stages.compilers import compilers_of, torch_of
from kerneltrial.stages.compiling import open_builder, open_given
from kerneltrial.stages.ground import Closing, Ground, binary_of, ground, in_parallel
from kerneltrial.stages.job import Job
from kerneltrial.stages.measuring import (
    Asked,
    Kernel,
    ceilings_of,
    counts_of,
    is_stored,
    performance_cases,
    samples_of,
)
from kerneltrial.stages.profiling import profile_of

_COMPILER = preload({"cuda_cpp"})
_KERNELS = ("baseline", "reference")


@dataclass(frozen=True)
class Fresh:
    """Processes that have run nothing: what times the baseline, and what measures the card's ceilings."""

    times: Runner
    ceilings: Runner


def run(job: Job) -> Qualification:
    """Compile baseline and reference, try the null candidates, measure the baseline.

    Raises
    ------
    InputProblem, QualificationProblem
        The baseline does not compile or is wrong, a case cannot fail anyone, oracle and reference disagree.
    """
    lock = job.record("lock", Lock)
    with torch_of(job, lock) as torch, ground(job, shelved=True) as g, contextlib.ExitStack() as children:
        runners = {group: children.enter_context(g.runner()) for group in _KERNELS if job.sources[group]}
        fresh = Fresh(*(children.enter_context(g.runner()) for _ in range(2)))
        if lock.device.kind == "cuda":
            for runner in (*runners.values(), fresh.times, fresh.ceilings):
                runner.begin()  # the card is opened while compilers work; what measures is idle until all are judged
        kernels = _compiled(job, lock)
        qualified = _qualified(g, kernels, runners, (torch, fresh))
        with Closing() as closing:
            closing.soon(*runners.values(), fresh.times, fresh.ceilings)
        tried(g, kernels["baseline"])
        return qualified


def _qualified(
    g: Ground, kernels: Mapping[str, Kernel], runners: Mapping[str, Runner], opened: tuple[Torch | None, Fresh]
) -> Qualification:
    torch, fresh = opened
    subjects = {
        group: Subject(binary_of(kernel.built, g.job.objects), kernel.plan, kernel.built.abi, runners[group])
        for group, kernel in kernels.items()
    }
    baseline = kernels["baseline"]
    judge = Judge(g.setup(subjects["baseline"]))
    qualified: Qualified = qualify(judge, baseline.built.candidate, subjects.get("reference"))
    errors = judge.answers.baseline_errors((case, judge.draws(case)) for case in judge.cases)
    performance = _performance(g, baseline, judge.answers, fresh)
    compilers = compilers_of(g, baseline, judge.answers, torch)
    profile = profile_of(g, baseline)
    return Qualification(
        baseline=baseline.built,
        baseline_plan=baseline.plan,
        cases=qualified.cases,
        baseline_errors=errors,
        second_opinion=qualified.second_opinion,
        performance=performance,
        unchecked=qualified.unchecked,
        compilers=compilers,
        profile=profile,
    )


def _compiled(job: Job, lock: Lock) -> dict[str, Kernel]:
    """The trusted kernels, built by the same compiler in the same kind of child as any candidate."""
    paths = {group: job.source(group) for group in _KERNELS if job.sources[group]}
    prepare = {name for path in paths.values() for name in (given.PREPARE if given.kind_of(path) else _COMPILER)}
    with Nursery(tuple(sorted(prepare))) as nursery:
        built = in_parallel(lambda path: _built(job, lock, nursery, path), list(paths.values()), len(paths))
    plans = [read_plan(plan_path(path)) for path in paths.values()]
    return {group: Kernel(built=b, plan=p) for group, b, p in zip(paths, built, plans, strict=True)}


def _built(job: Job, lock: Lock, nursery: Nursery, path: Path) -> Built:
    """Compiled from source, or taken as it is given."""
    content, plan, kind = path.read_bytes(), read_plan(plan_path(path)), given.kind_of(path)
    if kind is not None:
        job.objects.put(content)
        try:
            return open_given(lock, nursery).build(kind, content, plan, job.objects)
        except BuildProblem as problem:
            raise InputProblem(f"{_name(path, job)}: {problem}") from None
    candidate = identified("cuda_cpp", job.objects.put(content), plan)
    built = open_builder(job, lock, nursery).build(candidate, content, job.objects)
    if not isinstance(built, Built):
        raise InputProblem(f"{_name(path, job)}: {refusal(built, path)}")
    return built


def refusal(built: NotBuilt, path: Path) -> str:
    """Why a trusted kernel was not built, in its own file's name, and which file to mend."""
    words = built.detail.replace(f"{CANDIDATE_NAME}(", f"{path.name}(")
    of_plan = built.reason in (Reason.ENTRY_MISSING, Reason.PARAMETERS_DIFFER, Reason.BAD_PLAN)
    files = f"{path.name} or {plan_path(path).name}" if of_plan else path.name
    return f"{built.reason.value}: {words}; correct {files}"


def _performance(g: Ground, baseline: Kernel, answers: Answers, fresh: Fresh) -> BaselineLatency | BaselineCounts:
    """The baseline's own figures: timed beside itself, or counted."""
    try:
        if g.lock.device.kind == "cpu":
            counts = counts_of(g, baseline, performance_cases(g))
            return BaselineCounts(
                cases={name: score(stored.value) for name, stored in counts.items()},
                samples={name: stored.digest for name, stored in counts.items()},
            )
        pair, cases = (baseline, baseline), performance_cases(g)
        if not is_stored(g, pair, cases, Asked()):  # one that came up meanwhile would be another process on the card
            in_parallel(Runner.device, [fresh.times, fresh.ceilings], 2)
        timed = samples_of(g, pair, cases, answers, Asked(runner=fresh.times))
        for stored in timed.values():
            if stored.value.faults:
                raise InputProblem(f"the baseline is wrong when it is timed: {stored.value.faults[0].detail}")
        ceilings = ceilings_of(g, fresh.ceilings)
        return BaselineLatency(
            cases={name: latency_us(stored.value.samples, ("a", "a2")) for name, stored in timed.items()},
            samples={name: stored.digest for name, stored in timed.items()},
            ceilings=ceilings,
            floors={c.name: floor_of(g.lock.contract, c.dimensions, ceilings) for c in cases},
        )
    except Refused as refused:
        raise InputProblem(f"the baseline cannot be measured on {g.lock.device.kind}: {refused}") from refused


def _name(path: Path, job: Job) -> str:
    return str(path.relative_to(job.root))
