"""Propose: the attempts of one iteration, from the records of earlier ones alone."""

from kerneltrial.dag.graph import record_path
from kerneltrial.propose.files import Files
from kerneltrial.propose.history import Iteration, history_of
from kerneltrial.propose.proposer import NO_USAGE, Proposer, assemble
from kerneltrial.propose.search.search import open_search
from kerneltrial.records.build import Build
from kerneltrial.records.lock import Lock
from kerneltrial.records.prize import KnownPrize, Prize
from kerneltrial.records.proposal import Proposal, Unusable
from kerneltrial.records.reason import Reason
from kerneltrial.records.timing import Timing
from kerneltrial.records.validation import Validation
from kerneltrial.stages.job import Job
from kerneltrial.store import envelopes


def run(job: Job) -> Proposal:
    """Ask the proposer for as many candidates as the lock says; ask nothing where the prize is too small."""
    lock = job.record("lock", Lock)
    withheld = _withheld(job)
    if withheld is not None:
        return Proposal(proposer=lock.proposer, attempts=(withheld,), usage=NO_USAGE)
    parts = zip(
        job.records("propose", Proposal),
        job.records("build", Build),
        job.records("validate", Validation),
        job.records("time", Timing),
        strict=True,
    )
    history = history_of(Iteration(proposal=p, build=b, validation=v, timing=t) for p, b, v, t in parts)
    drafts = _proposer(job, lock).propose(history, lock.candidates_per_iteration)
    return assemble(lock.proposer, drafts, history, job.objects)


def _withheld(job: Job) -> Unusable | None:
    """The prize orders proposals and does not make them stale (workflow/adr/0003), so it is read here."""
    path = record_path(job.trial, "prize")
    prize = envelopes.body(Prize, (job.root / path).read_bytes(), path).prize
    if isinstance(prize, KnownPrize) and not prize.can_pay_back:
        detail = f"no kernel could save more than {prize.saved_usd_per_month} USD a month, so none was asked for"
        return Unusable(reason=Reason.PRIZE_TOO_SMALL, detail=detail)
    return None


def _proposer(job: Job, lock: Lock) -> Proposer:
    if lock.proposer == "files":
        return Files(job.source("candidates").parent)
    return open_search(job.source("space"), lock.cases, lock.device, lock.seed)
