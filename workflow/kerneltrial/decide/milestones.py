"""Milestone reward of each candidate, as a proposer could be trained on it (DESIGN.md section 8)."""

from collections.abc import Iterable

from kerneltrial.decide.standing import Standing
from kerneltrial.records.decision import Milestone
from kerneltrial.records.timing import Timed

_FASTER = 1.05


def milestones(standings: Iterable[Standing]) -> tuple[Milestone, ...]:
    """One a candidate, in order; attempts that gave no new candidate have none."""
    return tuple(
        Milestone(candidate=standing.candidate, reward=reward(standing)) for standing in standings if standing.proposed
    )


def reward(standing: Standing) -> int:
    """-1 wrong; 0 could not be judged; +1 right on public and sealed cases; +2 faster than the baseline by 5 %.

    Counts are not time and never give +2. +3, faster than the compiler's kernel too, needs a compiler's baseline,
    which is not timed yet.
    """
    if standing.in_doubt and not standing.held:
        return 0
    if not standing.held:
        return -1
    figures = standing.figures
    return 2 if isinstance(figures, Timed) and figures.geometric_mean >= _FASTER else 1
