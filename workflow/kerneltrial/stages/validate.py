"""Validate: is each candidate right, as far as can be checked here?"""

from kerneltrial.devices.runner import Runner
from kerneltrial.judge.validation import Further, Judge, ValidationOutcome
from kerneltrial.records.build import Build, Built, NotBuilt
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.reason import Skipped
from kerneltrial.records.validation import SkippedCandidate, Validation
from kerneltrial.stages.ground import Closing, binary_of, candidates_and_builds, ground, in_parallel
from kerneltrial.stages.job import Job
from kerneltrial.stages.sanitizing import sanitizer_of
from kerneltrial.stages.strictly import strictly

WORKERS = 4


def run(job: Job) -> Validation:
    """Judge this iteration's candidates, each in a runner of its own."""
    pairs = candidates_and_builds(job)
    refused = {b.candidate: b for b in job.record("build", Build).candidates if isinstance(b, NotBuilt)}
    if len(refused) == len(pairs):
        return Validation(candidates=tuple(_skipped(refused[c.id]) for c, _ in pairs))
    with ground(job, shelved=True) as g, strictly(g) as looks, g.runner() as own, Closing() as closing:
        runners = [g.runner() for _ in pairs]
        for runner, (_, built) in zip(runners[:WORKERS], pairs, strict=False):
            if built is not None:
                runner.begin()  # devices open while the judge makes ready
        qualification = job.record("qualify", Qualification)
        judge = Judge(g.setup(g.baseline(qualification, own), qualification))

        def one(pair: tuple[Runner, tuple[Candidate, Built | None]]) -> ValidationOutcome | SkippedCandidate:
            runner, (candidate, built) = pair
            if built is None:
                return _skipped(refused[candidate.id])
            with looks.runner() as strict:
                further = Further(sanitizes=sanitizer_of(g), strict=strict)
                binary = binary_of(built, g.job.objects)
                outcome = judge.judge_candidate(built, binary, candidate.plan, runner, further)
            closing.soon(runner)
            return outcome

        with judge.drawing_ahead():
            outcomes = in_parallel(one, list(zip(runners, pairs, strict=True)), WORKERS)
        closing.soon(own)
        return Validation(candidates=tuple(outcomes))


def _skipped(refused: NotBuilt) -> SkippedCandidate:
    return SkippedCandidate(candidate=refused.candidate, skipped=Skipped(stage="build", reason=refused.reason))
