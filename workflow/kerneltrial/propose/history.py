"""What a proposer may know: what became of each earlier attempt. Rebuilt from records alone, never from memory.

Nothing of the holdout is in here, so that nothing of it can reach a proposer.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kerneltrial.records.build import Build, Built, NotBuilt
from kerneltrial.records.proposal import Origin, Proposal, Proposed
from kerneltrial.records.reason import Reason
from kerneltrial.records.record import Count, Digest, Record
from kerneltrial.records.timing import Counted, Timed, Timing, Untimed
from kerneltrial.records.validation import Invalid, Unchecked, Validated, Validation


class Resources(Record, tag_field="kind", tag="resources"):
    """Of the entry that needs most: registers a thread, static shared memory a block, spilled bytes a thread."""

    registers: Count
    shared_bytes: Count
    spilled_bytes: Count


class NoResources(Record, tag_field="kind", tag="none"):
    """There is no binary."""


class Measured(Record, tag_field="fate", tag="measured"):
    """Right, and measured: `ratio` is the geometric mean of baseline over candidate, above 1 is better."""

    ratio: float


class Failed(Record, tag_field="fate", tag="failed"):
    """Not built, or wrong. `stage` says where it ended."""

    stage: str
    reason: Reason
    detail: str


class Unknown(Record, tag_field="fate", tag="unknown"):
    """Nothing can be said of it: unchecked, untimed, or lost to a fault that was not its own."""

    reason: Reason


Fate = Measured | Failed | Unknown


class Tried(Record):
    """One candidate of an earlier iteration and what became of it."""

    iteration: Count
    candidate: Digest
    origin: Origin
    resources: Resources | NoResources
    fate: Fate


class Iteration(Record):
    """The records of one finished iteration that a proposer may see."""

    proposal: Proposal
    build: Build
    validation: Validation
    timing: Timing


@dataclass(frozen=True)
class History:
    """All earlier attempts. `attempts` counts every slot that was used: candidates, duplicates, unusable ones."""

    iterations: int
    attempts: int
    tried: tuple[Tried, ...]

    @property
    def best(self) -> Tried | None:
        """The best measured candidate so far, the earlier one where two are equal."""
        measured = [t for t in self.tried if isinstance(t.fate, Measured)]
        return max(measured, key=_ratio, default=None)  # max keeps the first of equals

    @property
    def candidates(self) -> frozenset[str]:
        """Ids of everything that was proposed."""
        return frozenset(t.candidate for t in self.tried)


def history_of(iterations: Iterable[Iteration]) -> History:
    """Return the history of iterations 1, 2 ... in that order."""
    tried: list[Tried] = []
    attempts = number = 0
    for number, iteration in enumerate(iterations, start=1):
        attempts += len(iteration.proposal.attempts)
        tried.extend(_tried(number, iteration))
    return History(number, attempts, tuple(tried))


def _ratio(tried: Tried) -> float:
    return tried.fate.ratio if isinstance(tried.fate, Measured) else 0.0


def _tried(number: int, iteration: Iteration) -> Iterable[Tried]:
    built = {b.candidate: b for b in iteration.build.candidates}
    judged = {v.candidate: v for v in iteration.validation.candidates}
    timed = {t.candidate: t for t in iteration.timing.candidates}
    for attempt in iteration.proposal.attempts:
        if isinstance(attempt, Proposed):
            name = attempt.candidate.id
            fate = _fate(built.get(name), judged.get(name), timed.get(name))
            yield Tried(
                iteration=number,
                candidate=name,
                origin=attempt.origin,
                resources=_resources(built.get(name)),
                fate=fate,
            )


def _resources(built: Built | NotBuilt | None) -> Resources | NoResources:
    if not isinstance(built, Built) or not built.entries:
        return NoResources()
    return Resources(
        registers=max(e.registers for e in built.entries),
        shared_bytes=max(e.shared_bytes for e in built.entries),
        spilled_bytes=max(e.spilled_bytes for e in built.entries),
    )


def _fate(built: object, judged: object, timed: object) -> Fate:
    match (built, judged, timed):
        case (NotBuilt(reason=reason, detail=detail), _, _):
            return _ended("build", reason, detail)
        case (_, Invalid(reason=reason, detail=detail), _):
            return _ended("validate", reason, detail)
        case (_, Validated(), Timed(geometric_mean=ratio) | Counted(geometric_mean=ratio)) if ratio > 0:
            return Measured(ratio=ratio)
        case (_, Unchecked(reason=reason), _) | (_, _, Untimed(reason=reason)):
            return Unknown(reason=reason)
    return Unknown(reason=Reason.NOT_MEASURED)


def _ended(stage: str, reason: Reason, detail: str) -> Fate:
    """An infrastructure's or an unchecked reason never counts against a candidate."""
    if reason.reason_class.value == "candidate":
        return Failed(stage=stage, reason=reason, detail=detail)
    return Unknown(reason=reason)
