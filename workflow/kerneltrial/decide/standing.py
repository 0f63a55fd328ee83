"""Where each attempt's way ended: read off the records of its iteration."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol, TypeVar

from kerneltrial.records.build import Build, Built, NotBuilt
from kerneltrial.records.holdout import Holdout, HoldoutVerdict
from kerneltrial.records.proposal import Attempt, Duplicate, Proposal, Proposed, Try, TryWrong, Unusable
from kerneltrial.records.reason import Reason, ReasonClass
from kerneltrial.records.timing import Counted, Timed, Timing, Untimed
from kerneltrial.records.validation import Invalid, SkippedCandidate, Unchecked, Validated, Validation

ValidationEntry = Validated | Invalid | Unchecked | SkippedCandidate
TimingEntry = Timed | Counted | Untimed | SkippedCandidate


class Fate(Enum):
    """The last state that an attempt reached."""

    UNUSABLE = "unusable"
    DUPLICATE = "duplicate"
    TRIED = "tried"
    NOT_BUILT = "not_built"
    INVALID = "invalid"
    UNCHECKED = "unchecked"
    HOLDOUT_FAILED = "holdout_failed"
    HOLDOUT_UNCHECKED = "holdout_unchecked"
    UNTIMED = "untimed"
    HELD = "held"


_BUILT = frozenset(Fate) - {Fate.UNUSABLE, Fate.DUPLICATE, Fate.TRIED, Fate.NOT_BUILT}
_VALID = _BUILT - {Fate.INVALID, Fate.UNCHECKED}


@dataclass(frozen=True)
class Iteration:
    """The records of one iteration, without its cost."""

    number: int
    proposal: Proposal
    build: Build
    validation: Validation
    timing: Timing
    holdout: Holdout


@dataclass(frozen=True)
class Standing:
    """One attempt: `number` counts all attempts of the trial from 1; `candidate` is empty where there is none.

    A duplicate's `candidate` is the one that it repeats. `reason` is why its way ended, or None for one that held.
    `figures` is what the clock or the counts gave.
    """

    iteration: int
    attempt: Attempt
    number: int = 0
    candidate: str = ""
    fate: Fate = Fate.UNUSABLE
    reason: Reason | None = None
    detail: str = ""
    figures: Timed | Counted | None = None
    held: bool = False

    @property
    def proposed(self) -> bool:
        """It gave a new candidate."""
        return isinstance(self.attempt, Proposed)

    @property
    def built(self) -> bool:
        return self.fate in _BUILT

    @property
    def valid(self) -> bool:
        return self.fate in _VALID

    @property
    def in_doubt(self) -> bool:
        """Its end is nobody's fault: it could not be checked, or the machinery failed."""
        return self.reason is not None and self.reason.reason_class is not ReasonClass.CANDIDATE


class _OfCandidate(Protocol):
    @property
    def candidate(self) -> str: ...


Entry = TypeVar("Entry", bound=_OfCandidate)


def by_candidate(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Entries of a record by candidate id."""
    return {entry.candidate: entry for entry in entries}


def standings(iterations: Sequence[Iteration]) -> tuple[Standing, ...]:
    """One standing an attempt, in order."""
    all_of_them = (standing for iteration in iterations for standing in _of(iteration))
    numbered = [replace(standing, number=number) for number, standing in enumerate(all_of_them, start=1)]
    first = {standing.candidate: standing.number for standing in numbered if standing.proposed}
    return tuple(
        replace(standing, detail=f"the same as attempt {first[standing.candidate]}")
        if standing.fate is Fate.DUPLICATE
        else standing
        for standing in numbered
    )


def _of(iteration: Iteration) -> Iterator[Standing]:
    build = by_candidate(iteration.build.candidates)
    validation = by_candidate(iteration.validation.candidates)
    timing = by_candidate(iteration.timing.candidates)
    holdout = by_candidate(iteration.holdout.candidates)
    for attempt in iteration.proposal.attempts:
        start = Standing(iteration=iteration.number, attempt=attempt)
        if isinstance(attempt, Unusable):
            yield replace(start, fate=Fate.UNUSABLE, reason=attempt.reason, detail=attempt.detail)
        elif isinstance(attempt, Try):
            yield _tried(start, attempt)
        elif isinstance(attempt, Duplicate):
            yield replace(start, candidate=attempt.duplicate_of, fate=Fate.DUPLICATE)
        else:
            key = attempt.candidate.id
            start = replace(start, candidate=key)
            yield _made(start, build[key], validation[key]) or _judged(start, timing[key], holdout[key])


def _tried(start: Standing, attempt: Try) -> Standing:
    """A program's own try: its candidate is nobody's unless it is proposed too."""
    outcome = attempt.outcome
    if isinstance(outcome, TryWrong):
        detail = f"the proposer's own try, {outcome.stage}: {outcome.detail}"
        return replace(start, fate=Fate.TRIED, reason=outcome.reason, detail=detail)
    figure = f", {outcome.ratio:.3f} times the baseline" if outcome.ratio else ""
    return replace(start, fate=Fate.TRIED, detail=f"the proposer's own try: right{figure}")


def _made(start: Standing, build: Built | NotBuilt, validation: ValidationEntry) -> Standing | None:
    """The standing of a candidate that ended before it was right, or None."""
    if isinstance(build, NotBuilt):
        return replace(start, fate=Fate.NOT_BUILT, reason=build.reason, detail=build.detail)
    if isinstance(validation, Invalid):
        return replace(start, fate=Fate.INVALID, reason=validation.reason, detail=validation.detail)
    if isinstance(validation, Unchecked):
        return replace(start, fate=Fate.UNCHECKED, reason=validation.reason, detail=validation.detail)
    if isinstance(validation, SkippedCandidate):
        detail = f"skipped after {validation.skipped.stage}"
        return replace(start, fate=Fate.UNCHECKED, reason=validation.skipped.reason, detail=detail)
    return None


def _judged(start: Standing, timing: TimingEntry, holdout: HoldoutVerdict | SkippedCandidate) -> Standing:
    """The standing of a candidate that was right on the public cases."""
    if isinstance(timing, Timed | Counted):
        start = replace(start, figures=timing)
    verdict = holdout.verdict if isinstance(holdout, HoldoutVerdict) else "unchecked"
    if verdict == "failed":
        return replace(start, fate=Fate.HOLDOUT_FAILED, reason=Reason.HOLDOUT_FAILED)
    if verdict == "unchecked":
        detail = "the sealed cases could not be checked"
        return replace(start, fate=Fate.HOLDOUT_UNCHECKED, reason=Reason.CHECK_ABSENT, detail=detail)
    if isinstance(timing, Untimed):
        return replace(start, fate=Fate.UNTIMED, reason=timing.reason, detail=timing.detail, held=True)
    if isinstance(timing, SkippedCandidate):
        detail = f"skipped after {timing.skipped.stage}"
        return replace(start, fate=Fate.UNTIMED, reason=timing.skipped.reason, detail=detail, held=True)
    return replace(start, fate=Fate.HELD, held=True)
