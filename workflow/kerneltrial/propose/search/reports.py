"""What the compiler reports of the configurations that a search looks at before it proposes, and what follows from it.

The prior knows registers and shared memory as the space's author guesses them. The compiler knows them, and what it had
to spill, before anything runs. So the best-looking configurations are compiled, their prior is worked out again from
the report, and one that does not compile is known to the model as a failure and is not proposed.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.history import NoResources, Resources
from kerneltrial.propose.proposer import Draft
from kerneltrial.propose.search.card import Card
from kerneltrial.propose.search.prior import Dimensions, Reports, log_cycles
from kerneltrial.propose.search.space import Space
from kerneltrial.records.reason import Reason
from kerneltrial.records.record import Count, Record

Floats = NDArray[np.float64]


class Compiles(Record, tag_field="report", tag="compiles"):
    """Of the entry that needs most: registers a thread, static shared memory a block, spilled bytes a thread."""

    registers: Count
    shared_bytes: Count
    spilled_bytes: Count


class DoesNot(Record, tag_field="report", tag="does_not"):
    """There is no binary, and that is the source's own fault."""

    reason: Reason
    detail: str


class Silent(Record, tag_field="report", tag="silent"):
    """The compiler could not be asked, which is nobody's fault: nothing is known."""


Report = Compiles | DoesNot | Silent
Compile = Callable[[Sequence[Draft]], Sequence[Report]]


class Terms(NamedTuple):
    """What the prior is worked out from."""

    space: Space
    cases: Sequence[Dimensions]
    card: Card

    def guess(self, rows: NDArray[np.intp], reports: Reports | None = None) -> Floats:
        """Return the negative log of the prior's cycles at `rows`, shape (len(rows),).

        Raises
        ------
        InputProblem
            The plan has no launch for a case, or an expression has no value; the line names the space's file.
        """
        table = {name: column[rows] for name, column in self.space.table.items()}
        try:
            return -log_cycles(self.space.file, table, self.cases, self.card, reports)
        except InputProblem as fault:
            raise InputProblem(f"{self.space.path}: {fault}") from None


class Refined:
    """The prior of every configuration, corrected where a report is known. One for a proposal."""

    def __init__(self, terms: Terms, guess: Floats) -> None:
        self._terms = terms
        self._guess = guess
        self._reported: dict[int, Compiles | Resources] = {}
        self._corrected: Floats | None = guess
        self.failed: set[int] = set()
        self.asked: set[int] = set()

    def add(self, row: int, report: Report | Resources | NoResources) -> None:
        """Take a report in. Resources of an earlier build serve as well; without a binary they say nothing."""
        self.asked.add(row)
        if isinstance(report, DoesNot):
            self.failed.add(row)
        elif isinstance(report, Compiles | Resources) and report.registers:
            self._reported[row] = report
            self._corrected = None

    @property
    def guess(self) -> Floats:
        """Return log speed by the prior, shape (n,). What has no report gets the reports' usual correction.

        Else whatever was compiled would stand behind what was not, wherever the author guessed too well.
        """
        if self._corrected is None:
            rows = np.array(list(self._reported), dtype=np.intp)
            told = Reports(*np.array([_values(report) for report in self._reported.values()]).T)
            corrections = self._terms.guess(rows, told) - self._terms.guess(rows)
            self._corrected = self._guess + np.median(corrections)
            self._corrected[rows] = self._guess[rows] + corrections
        return self._corrected


def _values(report: Compiles | Resources) -> tuple[int, int, int]:
    return report.registers, report.shared_bytes, report.spilled_bytes
