"""The search's winner: best geometric mean among candidates that were right and held."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kerneltrial.decide.amounts import plural
from kerneltrial.decide.standing import by_candidate
from kerneltrial.records.confirmation import NoWinner
from kerneltrial.records.decision import Winner
from kerneltrial.records.holdout import Holdout, HoldoutVerdict
from kerneltrial.records.timing import Counted, Timed, Timing
from kerneltrial.records.validation import Validated, Validation


@dataclass(frozen=True)
class Judged:
    """What the choice of a winner reads of one iteration."""

    number: int
    validation: Validation
    timing: Timing
    holdout: Holdout


def choose_winner(iterations: Sequence[Judged]) -> Winner | NoWinner:
    """The candidate with the best geometric mean of those that are valid, held and measured; ties go to the lower id.

    A candidate's figure ranks it and no more: what decides is the confirmation.
    """
    eligible = [winner for iteration in iterations for winner in _eligible(iteration)]
    if not eligible:
        return NoWinner(why=_why_not(iterations))
    return min(eligible, key=lambda winner: (-winner.geometric_mean, winner.candidate))


def _eligible(iteration: Judged) -> Iterator[Winner]:
    valid = by_candidate(entry for entry in iteration.validation.candidates if isinstance(entry, Validated))
    held = {
        entry.candidate
        for entry in iteration.holdout.candidates
        if isinstance(entry, HoldoutVerdict) and entry.verdict == "held"
    }
    for timing in iteration.timing.candidates:
        if isinstance(timing, Timed | Counted) and timing.candidate in valid and timing.candidate in held:
            yield Winner(
                candidate=timing.candidate,
                iteration=iteration.number,
                measure="time" if isinstance(timing, Timed) else "counts",
                geometric_mean=timing.geometric_mean,
            )


def _why_not(iterations: Sequence[Judged]) -> str:
    judged = [entry for iteration in iterations for entry in iteration.validation.candidates]
    if not judged:
        return "no candidate was proposed"
    valid = sum(isinstance(entry, Validated) for entry in judged)
    if valid == 0:
        return f"none of {plural(len(judged), 'candidate')} was right on every public case"
    return (
        f"{valid} of {len(judged)} candidates were right on the public cases, and none of these held and was measured"
    )
