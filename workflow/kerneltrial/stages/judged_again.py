"""Winner and baseline judged again on a device of the reader's: public cases, and the sealed ones once revealed."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

from kerneltrial.dag import graph
from kerneltrial.dag.freshness import Digests
from kerneltrial.devices.device import DeviceProblem
from kerneltrial.inputs.config import Config
from kerneltrial.inputs.holdout import read_holdout
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.judge.holdout import judge_holdout
from kerneltrial.judge.validation import Judge, ValidationOutcome
from kerneltrial.records.build import Built
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.decision import Decision, Winner
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.validation import Invalid, Unchecked
from kerneltrial.stages.ground import Ground, binary_of, candidates_and_builds, ground
from kerneltrial.stages.job import Job
from kerneltrial.stages.running import job_of
from kerneltrial.store import envelopes
from kerneltrial.store.canonical import convert, digest


def judged_again(config: Config, root: Path, salt: bytes, oracle: Path) -> Iterator[str]:
    """What is not right here; raises DeviceProblem where there is no device such as the trial's.

    `oracle` is the reader's: an oracle is Python that runs in this process, so it is never taken from evidence that
    others made. It must be the locked one.
    """
    envelope = envelopes.read(root / graph.record_path(config.trial, "decide"))
    winner = convert(Decision, envelope.body).winner if envelope else None
    if not isinstance(winner, Winner):
        raise DeviceProblem("there is no winner to judge again")
    job = _with_oracle(job_of(config, "holdout", winner.iteration, Digests(root)), oracle)
    candidate, built = next((c, b) for c, b in candidates_and_builds(job) if c.id == winner.candidate and b is not None)
    with ground(job) as g:
        qualification = job.record("qualify", Qualification)
        with g.runner() as own:
            subject = g.baseline(qualification, own)
            judge = Judge(g.setup(subject, qualification))
            yield from _wrong("the baseline", judge.judge_subject("0" * 64, subject, judge.cases, screened=False))
        yield from _winner_again(g, qualification, candidate, built, salt)


def _winner_again(
    g: Ground, qualification: Qualification, candidate: Candidate, built: Built, salt: bytes
) -> Iterator[str]:
    kernel = (built, binary_of(built, g.job.objects), candidate.plan)
    with contextlib.ExitStack() as runners:
        own, runner, sealed = (runners.enter_context(g.runner()) for _ in range(3))
        baseline = g.baseline(qualification, own)
        yield from _wrong("the winner", Judge(g.setup(baseline, qualification)).judge_candidate(*kernel, runner))
        verdict = judge_holdout(g.setup(baseline), read_holdout(g.job.source("holdout")), salt, kernel, sealed)
        if verdict.verdict != "held":
            yield f"the winner: {verdict.verdict} on the sealed cases when judged again"


def _wrong(whose: str, outcome: ValidationOutcome) -> Iterator[str]:
    if isinstance(outcome, Invalid | Unchecked):
        yield f"{whose}: {outcome.reason.value} on the public cases when judged again: {outcome.detail}"


def _with_oracle(job: Job, oracle: Path) -> Job:
    locked = digest((job.root / job.sources["oracle"][0]).read_bytes())
    if not oracle.is_file() or digest(oracle.read_bytes()) != locked:
        raise InputProblem(f"{oracle}: is not the locked oracle; name a copy of it that you have read")
    return dataclasses.replace(job, sources={**job.sources, "oracle": (str(oracle.resolve()),)})
