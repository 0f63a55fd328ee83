"""The winner's cases as files that run by themselves (`kerneltrial rerun FILE`)."""

from collections.abc import Mapping

import numpy as np

from kerneltrial.inputs import oracle
from kerneltrial.inputs.dtypes import to_bytes
from kerneltrial.inputs.values import generate
from kerneltrial.judge.compare import Expected
from kerneltrial.judge.kept import kept
from kerneltrial.records.best_case import BestCase
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.case import Case
from kerneltrial.records.lock import Lock
from kerneltrial.stages.job import Job
from kerneltrial.store.canonical import digest

_MOST = 4  # files: the performance cases first


def best_cases(job: Job, lock: Lock, best: Candidate | None) -> Mapping[str, BestCase]:
    """By file name, best-case-1.json first; nothing where there is no winner. The oracle runs in this process."""
    if best is None:
        return {}
    trusted = oracle.load(job.source("oracle"))
    cases = sorted(lock.cases.cases, key=lambda case: case.kind != "performance")[:_MOST]
    source = job.objects.get(best.source).decode()
    return {
        f"best-case-{number}.json": _best_case(job, lock, (best, source), case, trusted)
        for number, case in enumerate(cases, start=1)
    }


def _best_case(job: Job, lock: Lock, kernel: tuple[Candidate, str], case: Case, trusted: oracle.Oracle) -> BestCase:
    contract, (best, source) = lock.contract, kernel
    values = generate(contract, case, 0, job.source("cases").parent)
    answer = trusted.answer(contract, values, case.dimensions)
    expected = {output.name: kept(output) for output in Expected.of(contract, answer)}
    return BestCase(
        schema_version=1,
        trial=lock.trial,
        candidate=best.id,
        oracle=trusted.digest,
        language=best.language,
        source=source,
        plan=best.plan,
        contract=contract,
        case=case,
        numpy=np.__version__,
        inputs={
            array.name: digest(to_bytes(values[array.name], array.dtype))
            for array in contract.arrays
            if array.name in values
        },
        expected=expected,
    )
