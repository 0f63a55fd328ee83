"""What a decision rests on: the records, put together once."""

from dataclasses import dataclass
from functools import cached_property

from kerneltrial.decide.payback import payback
from kerneltrial.decide.standing import Iteration, Standing, standings
from kerneltrial.decide.stopping import stop_reason
from kerneltrial.decide.winner import Judged, choose_winner
from kerneltrial.records.confirmation import Confirmation, NoWinner
from kerneltrial.records.cost import Spent
from kerneltrial.records.decision import Payback, PaybackNever, PaybackUnknown, Stop, Winner
from kerneltrial.records.lock import Lock
from kerneltrial.records.prize import Prize
from kerneltrial.records.qualification import Qualification
from kerneltrial.records.receipt import NoReceipt, Receipt
from kerneltrial.records.terms import Terms


@dataclass(frozen=True)
class Grounds:
    """All records of a trial. `spent` sums usage up to and including the confirmation; `iterations` oldest first."""

    lock: Lock
    terms: Terms
    qualification: Qualification
    prize: Prize
    iterations: tuple[Iteration, ...]
    confirmation: Confirmation
    spent: Spent
    receipt: Receipt | NoReceipt

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        return standings(self.iterations)

    @cached_property
    def winner(self) -> Winner | NoWinner:
        return choose_winner(tuple(Judged(i.number, i.validation, i.timing, i.holdout) for i in self.iterations))

    @cached_property
    def stop(self) -> Stop:
        return stop_reason(self.prize, (i.proposal for i in self.iterations))

    @cached_property
    def payback(self) -> Payback | PaybackNever | PaybackUnknown:
        return payback(self.spent.total_usd, self.confirmation, self.terms.now, self.lock.seed)

    @property
    def candidates(self) -> tuple[Standing, ...]:
        """Standings of attempts that gave a new candidate."""
        return tuple(standing for standing in self.standings if standing.proposed)
