"""Records of all iterations that a job reads, put together for the rooms that judge a trial as a whole."""

from kerneltrial.decide.cost import spent
from kerneltrial.decide.standing import Iteration
from kerneltrial.decide.winner import Judged
from kerneltrial.records.build import Build
from kerneltrial.records.cost import Spent
from kerneltrial.records.holdout import Holdout
from kerneltrial.records.proposal import Proposal
from kerneltrial.records.terms import Prices, Workload
from kerneltrial.records.timing import Timing
from kerneltrial.records.validation import Validation
from kerneltrial.stages.job import Job

COSTED = ("qualify", "propose", "build", "validate", "time", "holdout")


def iterations(job: Job) -> tuple[Iteration, ...]:
    """One `Iteration` for each iteration that the job reads, oldest first."""
    parts = zip(
        job.records("propose", Proposal),
        job.records("build", Build),
        job.records("validate", Validation),
        job.records("time", Timing),
        job.records("holdout", Holdout),
        strict=True,
    )
    return tuple(Iteration(number, *records) for number, records in enumerate(parts, start=1))


def judged(job: Job) -> tuple[Judged, ...]:
    """What the choice of a winner reads, of each iteration that the job reads."""
    parts = zip(
        job.records("validate", Validation), job.records("time", Timing), job.records("holdout", Holdout), strict=True
    )
    return tuple(Judged(number, *records) for number, records in enumerate(parts, start=1))


def spent_so_far(job: Job, prices: Prices, workload: Workload, more: tuple[str, ...] = ()) -> Spent:
    """What was spent on the stages up to the job's iteration, and on those named in `more`."""
    models = [proposal.usage for proposal in job.records("propose", Proposal)]
    return spent(models, job.used((*COSTED, *more), job.last_iteration), prices, workload)
