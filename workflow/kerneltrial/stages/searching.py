"""What the propose stage hands to the search: the compiler, in limited children, for what is about to be proposed."""

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kerneltrial.build.preloading import preload
from kerneltrial.propose.history import Iteration, history_of
from kerneltrial.propose.proposer import Draft, candidate_of
from kerneltrial.propose.search.reports import Compiles, DoesNot, Report, Silent
from kerneltrial.propose.search.search import open_search
from kerneltrial.records.build import Built, NotBuilt
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.lock import Lock
from kerneltrial.records.proposal import Unusable
from kerneltrial.records.record import Record
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.stages.compiling import open_builder
from kerneltrial.stages.job import Job
from kerneltrial.store.measurements import Measurements
from kerneltrial.store.objects import Objects


class Kept(Record):
    """A report as it is stored."""

    report: Report


def ask_search(job: Job, lock: Lock, iterations: Sequence[Iteration]) -> Sequence[Draft | Unusable]:
    """Ask the search for this iteration's candidates."""
    with contextlib.ExitStack() as opened:
        bench = Reporting(job, lock, opened)
        # Counts of the `cpu` device know no registers, so that there a report could only mislead.
        reports = bench.reports if lock.device.kind == "cuda" else None
        search = open_search(job.source("space"), lock.cases, lock.device, lock.seed, reports)
        return search.propose(history_of(iterations), lock.candidates_per_iteration)


class Reporting:
    """Compiles drafts for what the compiler says of them. Each is compiled once: reports are stored like measurements.

    A report is no evidence. What was compiled lies on the trial's shelf, where `build` finds what is proposed.
    """

    def __init__(self, job: Job, lock: Lock, opened: contextlib.ExitStack) -> None:
        self._job, self._lock, self._opened = job, lock, opened
        self._nursery = job.nursery

    def reports(self, drafts: Sequence[Draft]) -> list[Report]:
        """The reports in the order of the drafts; those that are not stored yet are compiled side by side."""
        candidates = [candidate_of(draft) for draft in drafts]
        absent = [
            (candidate, draft.source)
            for candidate, draft in zip(candidates, drafts, strict=True)
            if not self._store.path(self._key(candidate)).is_file()
        ]
        found = {built.candidate: built for built in self._built(absent)}
        return [self._kept(candidate, found.get(candidate.id)) for candidate in candidates]

    @property
    def _store(self) -> Measurements:
        return self._job.measurements

    def _key(self, candidate: Candidate) -> dict[str, object]:
        lock = self._lock
        return {
            "report": candidate.id,
            "arch": lock.device.arch,
            "contract": lock.contract,
            "toolchain": lock.toolchain,
        }

    def _kept(self, candidate: Candidate, built: Built | NotBuilt | None) -> Report:
        if isinstance(built, NotBuilt) and built.reason.reason_class.value != "candidate":
            return Silent()  # and not stored: another time it may be known

        def draw() -> Kept:
            assert built is not None  # it was compiled where it was not stored
            return Kept(report=_report(built))

        return self._store.once(self._key(candidate), draw, Kept).value.report

    def _built(self, pairs: Sequence[tuple[Candidate, bytes]]) -> tuple[Built | NotBuilt, ...]:
        if not pairs:
            return ()
        if self._nursery is None:
            languages = {candidate.language for candidate, _ in pairs}
            self._nursery = self._opened.enter_context(Nursery(preload(languages)))
        with tempfile.TemporaryDirectory() as scratch:
            builder = open_builder(self._job, self._lock, self._nursery, shelved=True)
            return builder.build_all(pairs, Objects(Path(scratch)))


def _report(built: Built | NotBuilt) -> Report:
    if isinstance(built, NotBuilt):
        return DoesNot(reason=built.reason, detail=built.detail)
    return Compiles(
        registers=max((entry.registers for entry in built.entries), default=0),
        shared_bytes=max((entry.shared_bytes for entry in built.entries), default=0),
        spilled_bytes=max((entry.spilled_bytes for entry in built.entries), default=0),
    )
