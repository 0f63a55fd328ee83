"""Report: what a person reads and hands on, from the records alone."""

from kerneltrial.dag.graph import reports
from kerneltrial.records.confirmation import Confirmation
from kerneltrial.records.cost import Cost
from kerneltrial.records.decision import Decision
from kerneltrial.records.lock import Lock
from kerneltrial.records.presentation import Presentation
from kerneltrial.records.prize import Prize
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.reported import Reported
from kerneltrial.records.terms import Terms
from kerneltrial.report.inputs import ReportInputs
from kerneltrial.report.render import render
from kerneltrial.stages.best_cases import best_cases
from kerneltrial.stages.gathered import iterations
from kerneltrial.stages.job import Job
from kerneltrial.store.canonical import convert


def run(job: Job) -> Reported:
    """Write reports/TRIAL and say which files they are."""
    lock = job.record("lock", Lock)
    inputs = ReportInputs(
        lock=lock,
        terms=job.record("terms", Terms),
        qualification=job.record("qualify", Qualification),
        prize=job.record("prize", Prize),
        iterations=iterations(job),
        costs=tuple(job.records("cost", Cost)),
        confirmation=job.record("confirm", Confirmation),
        decision=job.record("decide", Decision),
        source_of=job.objects.get,
        language=convert(Presentation, job.given["report"]).language,
    )
    return render(inputs, job.root / reports(job.trial), best_cases(job, lock, inputs.best))
