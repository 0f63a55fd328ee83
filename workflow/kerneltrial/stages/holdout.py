"""Holdout: one verdict a candidate on sealed cases, drawn after the candidate was fixed."""

from kerneltrial.devices.runner import Runner
from kerneltrial.inputs.holdout import read_holdout
from kerneltrial.judge.holdout import judge_holdout
from kerneltrial.judge.setup import Subject
from kerneltrial.records.build import Built
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.holdout import Holdout, HoldoutVerdict
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.validation import SkippedCandidate, Validated, Validation
from kerneltrial.stages.ground import Ground, Turns, binary_of, candidates_and_builds, ground, in_parallel
from kerneltrial.stages.job import Job
from kerneltrial.stages.passed import skipped_after
from kerneltrial.stages.salt import read_salt

WORKERS = 4


def run(job: Job) -> Holdout:
    """Judge the valid candidates; the others are skipped."""
    verdicts = {v.candidate: v for v in job.record("validate", Validation).candidates}
    pairs = candidates_and_builds(job)
    valid = [(c, b) for c, b in pairs if b is not None and isinstance(verdicts[c.id], Validated)]
    held: dict[str, HoldoutVerdict] = {}
    if valid:
        with ground(job, shelved=True) as g, g.runner() as own:
            runners = [g.runner() for _ in valid]
            for runner in runners[:WORKERS]:
                runner.begin()  # devices open while the judge makes ready
            baseline = g.baseline(job.record("qualify", Qualification), Turns(own))
            work = [(runner, candidate, built) for runner, (candidate, built) in zip(runners, valid, strict=True)]
            for verdict in in_parallel(lambda one: _judge(g, baseline, *one), work, WORKERS):
                held[verdict.candidate] = verdict
    entries: list[HoldoutVerdict | SkippedCandidate] = []
    for candidate, _ in pairs:
        entries.append(held.get(candidate.id) or skipped_after(verdicts[candidate.id]))
    return Holdout(candidates=tuple(entries))


def _judge(g: Ground, baseline: Subject, runner: Runner, candidate: Candidate, built: Built) -> HoldoutVerdict:
    job = g.job
    with runner:
        chosen = (built, binary_of(built, job.objects), candidate.plan)
        domain = read_holdout(job.source("holdout"))
        return judge_holdout(g.setup(baseline), domain, read_salt(job), chosen, runner)
