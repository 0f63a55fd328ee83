"""Records that follow from other records alone are made again in memory and compared: prize, cost, decision."""

from collections.abc import Iterator
from pathlib import Path

from kerneltrial.dag import graph
from kerneltrial.dag.freshness import Digests
from kerneltrial.decide.prize import prize
from kerneltrial.inputs.config import Config
from kerneltrial.records.problem import Problem
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.record import Record
from kerneltrial.records.terms import Policy, Prices, Workload
from kerneltrial.stages import cost, decide
from kerneltrial.stages.job import Job
from kerneltrial.stages.running import job_of
from kerneltrial.store import envelopes
from kerneltrial.store.canonical import canonical, convert


def differences(config: Config, root: Path) -> Iterator[str]:
    """Paths of records whose body is not what follows from the others, each with a word on it."""
    digests = Digests(root)
    for stage, iteration in graph.jobs(config.iterations):
        path = graph.record_path(config.trial, stage, iteration)
        envelope = envelopes.read(root / path)
        if stage not in ("prize", "cost", "decide") or envelope is None:
            continue
        try:
            again = _again(job_of(config, stage, iteration, digests))
        except (Problem, ValueError, LookupError, StopIteration, AttributeError) as error:
            # whatever records that contradict each other lead to
            yield f"{path}: cannot be worked out again from the records that are here ({type(error).__name__}: {error})"
            continue
        if canonical(again) != canonical(envelope.body):
            yield f"{path}: is not what follows from the records, the usage and the terms that are here"


def _again(job: Job) -> Record:
    if job.stage == "cost":
        return cost.run(job)
    if job.stage == "decide":
        return decide.run(job)
    return prize(
        job.record("qualify", Qualification),
        convert(Policy, job.given["policy"]),
        convert(Prices, job.given["prices"]),
        convert(Workload, job.given["workload"]),
    )
