"""Propose: the attempts of one iteration, from the records of earlier ones alone."""

from collections.abc import Sequence

from kerneltrial.dag.graph import record_path
from kerneltrial.propose.files import Files
from kerneltrial.propose.goal import goal_reached
from kerneltrial.propose.history import Iteration, history_of
from kerneltrial.propose.proposer import NO_USAGE, Draft, TriedDraft, assemble
from kerneltrial.records.build import Build
from kerneltrial.records.lock import Lock
from kerneltrial.records.prize import KnownPrize, Prize
from kerneltrial.records.proposal import ModelUsage, Proposal, Unusable
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.reason import Reason
from kerneltrial.records.timing import Timing
from kerneltrial.records.validation import Validation
from kerneltrial.stages.job import Job
from kerneltrial.store import envelopes


def run(job: Job) -> Proposal:
    """Ask the proposer for as many candidates as the lock says; ask nothing where the prize is too small."""
    lock = job.record("lock", Lock)
    # Replayed proposals are those of the model that was recorded, to the byte.
    name = "openai" if lock.proposer == "replay" else lock.proposer
    withheld = _withheld(job)
    if withheld is not None:
        return Proposal(proposer=name, attempts=(withheld,), usage=NO_USAGE)
    parts = zip(
        job.records("propose", Proposal),
        job.records("build", Build),
        job.records("validate", Validation),
        job.records("time", Timing),
        strict=True,
    )
    iterations = [Iteration(proposal=p, build=b, validation=v, timing=t) for p, b, v, t in parts]
    reached = goal_reached(iterations, job.record("qualify", Qualification).compilers)
    if lock.stop == "beats_compiler" and reached:
        enough = Unusable(reason=Reason.GOAL_REACHED, detail=reached)
        return Proposal(proposer=name, attempts=(enough,), usage=NO_USAGE)
    if (ended := _ended(iterations)) is not None:
        return Proposal(proposer=name, attempts=(ended,), usage=NO_USAGE)
    drafts, usage = _asked(job, lock, iterations)
    return assemble(name, drafts, history_of(iterations), job.objects, usage)


def _ended(iterations: Sequence[Iteration]) -> Unusable | None:
    """What ended the proposing: a budget that was spent. A shorter prompt that would still fit does not begin anew."""
    attempts = (attempt for iteration in iterations for attempt in iteration.proposal.attempts)
    spent = (a for a in attempts if isinstance(a, Unusable) and a.reason is Reason.BUDGET_SPENT)
    return next(spent, None)


def _withheld(job: Job) -> Unusable | None:
    """The prize orders proposals and does not make them stale (workflow/adr/0003), so it is read here."""
    path = record_path(job.trial, "prize")
    prize = envelopes.body(Prize, (job.root / path).read_bytes(), path).prize
    if isinstance(prize, KnownPrize) and not prize.can_pay_back:
        detail = f"no kernel could save more than {prize.saved_usd_per_month} USD a month, so none was asked for"
        return Unusable(reason=Reason.PRIZE_TOO_SMALL, detail=detail)
    return None


def _asked(
    job: Job, lock: Lock, iterations: Sequence[Iteration]
) -> tuple[Sequence[Draft | Unusable | TriedDraft], ModelUsage]:
    """Drafts and what a model charged for them. Proposers are imported late: most need what the others do not."""
    if lock.proposer in ("openai", "replay"):
        from kerneltrial.stages.modelling import ask_model

        return ask_model(job, lock, iterations)
    if lock.proposer == "command":
        from kerneltrial.stages.trying import ask_program

        return ask_program(job, lock, iterations), NO_USAGE
    if lock.proposer == "files":
        folder = min((job.root / path for path in job.sources["candidates"]), key=lambda path: len(path.parts)).parent
        return Files(folder).propose(history_of(iterations), lock.candidates_per_iteration), NO_USAGE
    from kerneltrial.stages.searching import ask_search

    return ask_search(job, lock, iterations), NO_USAGE
