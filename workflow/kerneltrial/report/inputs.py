"""What a report is made from: records, and the bytes of candidates' sources."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from kerneltrial.decide.standing import Iteration, Standing, standings
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.confirmation import Confirmation
from kerneltrial.records.cost import Cost
from kerneltrial.records.decision import Decision, Winner
from kerneltrial.records.lock import Lock
from kerneltrial.records.presentation import Language
from kerneltrial.records.prize import Prize
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.terms import Terms


@dataclass(frozen=True)
class ReportInputs:
    """All records of a decided trial, iterations and costs oldest first.

    `source_of` gives the bytes of a candidate's source by their digest.
    """

    lock: Lock
    terms: Terms
    qualification: Qualification
    prize: Prize
    iterations: tuple[Iteration, ...]
    costs: tuple[Cost, ...]
    confirmation: Confirmation
    decision: Decision
    source_of: Callable[[str], bytes]
    language: Language = "en"

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        return standings(self.iterations)

    @cached_property
    def candidates(self) -> dict[str, Candidate]:
        """Every candidate by id."""
        proposals = (iteration.proposal for iteration in self.iterations)
        return {candidate.id: candidate for proposal in proposals for candidate in proposal.candidates}

    @property
    def best(self) -> Candidate | None:
        """The winner, or None."""
        winner = self.decision.winner
        return self.candidates[winner.candidate] if isinstance(winner, Winner) else None

    @property
    def clocked(self) -> bool:
        """Figures are times of a GPU; else they are counts."""
        return self.lock.device.kind == "cuda"
