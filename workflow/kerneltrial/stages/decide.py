"""Decide: GO, NO-GO or INCONCLUSIVE, from the records alone."""

from kerneltrial.decide.decision import decide
from kerneltrial.decide.grounds import Grounds
from kerneltrial.evidence.receipts import receipt_of
from kerneltrial.records.confirmation import Confirmation
from kerneltrial.records.decision import Decision
from kerneltrial.records.lock import Lock
from kerneltrial.records.prize import Prize
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.terms import Terms
from kerneltrial.stages.gathered import iterations, spent_so_far
from kerneltrial.stages.job import Job


def run(job: Job) -> Decision:
    """The decision under the terms in force."""
    lock, terms = job.record("lock", Lock), job.record("terms", Terms)
    keys = job.source("reviewers") if job.sources["reviewers"] else None
    return decide(
        Grounds(
            lock=lock,
            terms=terms,
            qualification=job.record("qualify", Qualification),
            prize=job.record("prize", Prize),
            iterations=iterations(job),
            confirmation=job.record("confirm", Confirmation),
            spent=spent_so_far(job, terms.now.prices, terms.now.workload, more=("confirm",)),
            receipt=receipt_of(job.folder, lock, terms, keys),
        )
    )
