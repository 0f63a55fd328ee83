"""Milestone reward of each candidate, as a proposer could be trained on it (DESIGN.md section 8)."""

from collections.abc import Iterable
from math import exp, fsum, log

from kerneltrial.decide.standing import Standing
from kerneltrial.records.compilers import CompilerLatency, Compilers
from kerneltrial.records.decision import Milestone
from kerneltrial.records.timing import Timed

_FASTER = 1.05


def milestones(standings: Iterable[Standing], compilers: Compilers) -> tuple[Milestone, ...]:
    """One a candidate, in order; attempts that gave no new candidate have none."""
    return tuple(
        Milestone(candidate=standing.candidate, reward=reward(standing, compilers))
        for standing in standings
        if standing.proposed
    )


def reward(standing: Standing, compilers: Compilers) -> int:
    """-1 wrong; 0 could not be judged; +1 right on public and sealed cases; +2 faster than the baseline by 5 %.

    +3: faster than `torch.compile`'s kernel too, geometric mean over the performance cases. Counts are not time and
    never give +2; where the compiler was not measured nothing gives +3.
    """
    if standing.in_doubt and not standing.held:
        return 0
    if not standing.held:
        return -1
    figures = standing.figures
    if not isinstance(figures, Timed) or figures.geometric_mean < _FASTER:
        return 1
    return 3 if _beats_the_compiler(figures, compilers) else 2


def _beats_the_compiler(figures: Timed, compilers: Compilers) -> bool:
    for entry in compilers.entries:
        if isinstance(entry, CompilerLatency) and entry.name == "torch_compile":
            ratios = [entry.cases[case.case] / case.warm_us for case in figures.cases]
            return exp(fsum(map(log, ratios)) / len(ratios)) > 1
    return False
