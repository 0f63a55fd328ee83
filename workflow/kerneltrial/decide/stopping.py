"""Why the trial stopped where it did."""

from collections.abc import Iterable, Iterator

from kerneltrial.records.decision import Stop
from kerneltrial.records.prize import KnownPrize, Prize
from kerneltrial.records.proposal import Proposal, Unusable
from kerneltrial.records.reason import Reason


def stop_reason(prize: Prize, proposals: Iterable[Proposal]) -> Stop:
    """`prize`: nothing was proposed, since no kernel could pay back; `space_exhausted`: the proposer had no more;
    `budget`: the model's budget allowed no more; `beats_compiler`: the best was fast enough.

    A prize that became too small by an amendment, after candidates were tried, did not stop the trial.
    """
    attempts = [attempt for proposal in proposals for attempt in proposal.attempts]
    reasons = set(_unusable(attempts))
    hopeless = isinstance(prize.prize, KnownPrize) and not prize.prize.can_pay_back
    if hopeless and (Reason.PRIZE_TOO_SMALL in reasons or not attempts):
        return "prize"
    if Reason.GOAL_REACHED in reasons:
        return "beats_compiler"
    if Reason.BUDGET_SPENT in reasons:
        return "budget"
    return "space_exhausted" if Reason.SPACE_EXHAUSTED in reasons else "iterations"


def _unusable(attempts: Iterable[object]) -> Iterator[Reason]:
    return (attempt.reason for attempt in attempts if isinstance(attempt, Unusable))
