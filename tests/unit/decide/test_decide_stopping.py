"""Why a trial stopped: the goal, the budget, an exhausted proposer, or its iterations."""

import pytest

from kerneltrial.decide.stopping import stop_reason
from kerneltrial.propose.proposer import NO_USAGE
from kerneltrial.records.prize import Prize, UnknownPrize
from kerneltrial.records.proposal import Proposal, Unusable
from kerneltrial.records.reason import Reason

OPEN = Prize(prize=UnknownPrize(why="no clock", settled_by="a GPU"), example=False)


def proposal(*reasons: Reason) -> Proposal:
    attempts = tuple(Unusable(reason=reason, detail="") for reason in reasons)
    return Proposal(proposer="openai", attempts=attempts, usage=NO_USAGE)


@pytest.mark.parametrize(
    ("reasons", "stop"),
    [
        ((Reason.UNUSABLE_REPLY,), "iterations"),
        ((Reason.UNUSABLE_REPLY, Reason.BUDGET_SPENT), "budget"),
        ((Reason.SPACE_EXHAUSTED,), "space_exhausted"),
        ((Reason.UNUSABLE_REPLY, Reason.GOAL_REACHED), "beats_compiler"),
    ],
)
def test_the_last_word_of_the_proposals_says_why(reasons: tuple[Reason, ...], stop: str) -> None:
    assert stop_reason(OPEN, [proposal(reason) for reason in reasons]) == stop
