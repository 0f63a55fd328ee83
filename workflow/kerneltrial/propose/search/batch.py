"""What a search knows of its space: results of the history, and a proposal on its way."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kerneltrial.propose.history import Failed, Measured, Tried
from kerneltrial.propose.search.reports import Refined

FAILURE_LOSS = 0.7  # log ratio below the worst measured: about half as fast


@dataclass(frozen=True)
class Known:
    """Rows of the space whose value is known or believed: indices and y = log(ratio)."""

    rows: tuple[int, ...]
    results: tuple[float, ...]

    def extended(self, row: int, result: float) -> "Known":
        return Known((*self.rows, row), (*self.results, result))


def known_from(tried: Mapping[int, Tried]) -> Known:
    """Return results as y = log(ratio). A failure counts as clearly worse than the worst that was measured."""
    values = {row: math.log(t.fate.ratio) for row, t in tried.items() if isinstance(t.fate, Measured)}
    failed = _failure(tuple(values.values()))
    values |= {row: failed for row, t in tried.items() if isinstance(t.fate, Failed)}
    return Known(tuple(values), tuple(values.values()))


def _failure(results: Sequence[float]) -> float:
    return min([0.0, *results]) - FAILURE_LOSS


@dataclass
class Batch:
    """One proposal on its way: what is known, what is left to choose from, and how many may still be compiled."""

    known: Known
    refined: Refined
    left: list[int]
    taken: list[int]
    budget: int

    def take(self, row: int, believed: float) -> int:
        self.left.remove(row)
        self.taken.append(row)
        if self.known.rows:
            self.known = self.known.extended(row, believed)
        return row

    def drop(self, failed: Iterable[int]) -> None:
        """Rows that do not compile are not proposed; the model knows them as failures."""
        for row in failed:
            self.left.remove(row)
            self.known = self.known.extended(row, _failure(self.known.results))
