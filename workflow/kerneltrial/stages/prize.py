"""Prize: the most that any kernel could save, before anything is asked of a proposer."""

from kerneltrial.dag.graph import ledger_path
from kerneltrial.decide.prize import prize
from kerneltrial.records.prize import Prize
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.terms import Policy, Prices, Workload
from kerneltrial.stages.job import Job
from kerneltrial.store import ledger
from kerneltrial.store.canonical import convert


def run(job: Job) -> Prize:
    """The prize under today's terms; the ledger, which orders the proposals after it, keeps every version."""
    found = prize(
        job.record("qualify", Qualification),
        convert(Policy, job.given["policy"]),
        convert(Prices, job.given["prices"]),
        convert(Workload, job.given["workload"]),
    )
    ledger.record(job.root / ledger_path(job.trial, "prize"), found)
    return found
