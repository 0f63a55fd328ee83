"""The decision: every rule is asked, and the outcome follows from the answers."""

from collections.abc import Callable

from kerneltrial.decide import rules_application, rules_fast, rules_right, rules_worth
from kerneltrial.decide.grounds import Grounds
from kerneltrial.decide.milestones import milestones
from kerneltrial.records.confirmation import Confirmed, NotTimed
from kerneltrial.records.decision import RULES, Decision, RuleName, RuleResult, Winner, verdict

Rule = Callable[[Grounds], RuleResult]

_RULES: dict[RuleName, Rule] = {
    "correct_on_public_cases": rules_right.correct_on_public_cases,
    "held_on_holdout": rules_right.held_on_holdout,
    "confirmed_speedup": rules_fast.confirmed_speedup,
    "no_case_worse": rules_fast.no_case_worse,
    "positive_saving": rules_worth.positive_saving,
    "measured_on_gpu": rules_fast.measured_on_gpu,
    "vendor_not_faster": rules_fast.vendor_not_faster,
    "independent_oracle": rules_right.independent_oracle,
    "end_to_end_evidence": rules_application.end_to_end_evidence,
    "payback_within_horizon": rules_worth.payback_within_horizon,
    "reviewer_receipt": rules_worth.reviewer_receipt,
    "own_terms": rules_worth.own_terms,
    "prize": rules_worth.prize_worth_trying,
}


def decide(grounds: Grounds) -> Decision:
    """The decision on a whole trial.

    Raises
    ------
    ValueError
        The confirmation speaks of another candidate than the records' winner: they do not belong together.
    """
    _check_winner(grounds)
    rules = tuple(_RULES[name](grounds) for name in RULES)
    return Decision(
        outcome=verdict(rules),
        rules=rules,
        winner=grounds.winner,
        spent=grounds.spent,
        payback=grounds.payback,
        milestones=milestones(grounds.standings, grounds.qualification.compilers),
        post_hoc=grounds.terms.post_hoc,
        example=grounds.terms.example,
        stop=grounds.stop,
    )


def _check_winner(grounds: Grounds) -> None:
    outcome = grounds.confirmation.outcome
    confirmed = outcome.winner if isinstance(outcome, Confirmed | NotTimed) else None
    chosen = grounds.winner.candidate if isinstance(grounds.winner, Winner) else None
    if confirmed != chosen:
        raise ValueError(
            f"the confirmation is of {confirmed or 'no candidate'}, and the records' winner is {chosen or 'none'}; "
            "run the confirmation again"
        )
