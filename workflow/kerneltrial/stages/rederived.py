"""Records that follow from other records alone are made again in memory and compared: prize, cost, decision.

And of the confirmation, which of the candidates it is about.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kerneltrial.dag import graph
from kerneltrial.dag.freshness import Digests
from kerneltrial.decide.prize import prize
from kerneltrial.decide.winner import choose_winner
from kerneltrial.evidence.alike import close
from kerneltrial.inputs.config import Config
from kerneltrial.records.confirmation import NoWinner
from kerneltrial.records.decision import Winner
from kerneltrial.records.problem import Problem
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.record import Record
from kerneltrial.records.terms import Policy, Prices, Workload
from kerneltrial.stages import cost, decide
from kerneltrial.stages.gathered import judged
from kerneltrial.stages.job import Job
from kerneltrial.stages.running import job_of
from kerneltrial.store import envelopes
from kerneltrial.store.canonical import builtins, canonical, convert


def differences(config: Config, root: Path) -> Iterator[str]:
    """Paths of records whose body is not what follows from the others, each with a word on it."""
    digests = Digests(root)
    for stage, iteration in graph.jobs(config.iterations):
        path = graph.record_path(config.trial, stage, iteration)
        envelope = envelopes.read(root / path)
        if stage not in ("prize", "cost", "confirm", "decide") or envelope is None:
            continue
        try:
            job = job_of(config, stage, iteration, digests)
            if stage == "confirm":
                yield from (f"{path}: {line}" for line in of_another_winner(envelope.body, choose_winner(judged(job))))
                continue
            again = _again(job)
        except (Problem, ValueError, LookupError, StopIteration, AttributeError) as error:
            # whatever records that contradict each other lead to
            yield f"{path}: cannot be worked out again from the records that are here ({type(error).__name__}: {error})"
            continue
        if canonical(again) != canonical(envelope.body):
            yield f"{path}: is not what follows from the records, the usage and the terms that are here"


def of_another_winner(body: Mapping[str, Any], chosen: Winner | NoWinner) -> Iterator[str]:
    """What a confirmation says of the search's winner and does not follow from the candidates' records."""
    outcome = body["outcome"]
    if isinstance(chosen, NoWinner):
        if outcome != builtins(chosen):
            yield "is of a winner, or says why there is none, and the candidates' records say otherwise"
    elif outcome.get("winner") != chosen.candidate:
        yield f"is not of the search's winner, which is {chosen.candidate[:12]}"
    elif outcome["state"] == "not_timed":
        refused = chosen.measure == "time" and not outcome["valid"]  # it could not be timed again
        if not close(outcome["ratio"], 0.0 if refused else chosen.geometric_mean):
            yield "ratio of the confirmation: not that of the search's winner"
    elif chosen.measure != "time":
        yield "says that the winner was timed, and the search only counted"


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
