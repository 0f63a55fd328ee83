"""Rules about being worth it: the saving, the payback, whose figures these are, who has looked."""

import msgspec

from kerneltrial.decide.amounts import number, percent, plain, usd
from kerneltrial.decide.grounds import Grounds
from kerneltrial.decide.saving import confirmed_saving
from kerneltrial.records.confirmation import Confirmed, NotTimed
from kerneltrial.records.decision import Failed, Passed, Payback, PaybackNever, RuleName, RuleResult, Unknown
from kerneltrial.records.prize import UnknownPrize
from kerneltrial.records.receipt import Receipt
from kerneltrial.records.terms import Agreed
from kerneltrial.store.canonical import canonical, digest

_ON_GPU = "run the trial on a machine with the GPU that production uses"


def positive_saving(grounds: Grounds) -> RuleResult:
    """Calls times latency saved, over the whole workload, is above zero at the lower end of the interval."""
    rule: RuleName = "positive_saving"
    asked = "more than 0 GPU hours a month saved over the whole workload, at the lower end of the interval"
    example, outcome = grounds.terms.example, grounds.confirmation.outcome
    if not isinstance(outcome, Confirmed):
        timed = isinstance(outcome, NotTimed)
        seen = "no latency of the winner was confirmed" if timed else "there is no winner"
        settled = _ON_GPU if timed else "a candidate that is right on every public and every sealed case"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=settled)
    saved = confirmed_saving(grounds.terms.now.workload.calls_per_month, outcome)
    seen = f"{number(saved.middle)} GPU hours a month ({number(saved.low)} to {number(saved.high)})"
    if saved.low > 0:
        return Passed(rule=rule, asked=asked, seen=seen, example=example)
    if saved.high <= 0:
        return Failed(rule=rule, asked=asked, seen=seen, example=example)
    settled = "a new trial with more confirmation processes"
    return Unknown(rule=rule, asked=asked, seen=seen, example=example, settled_by=settled)


def payback_within_horizon(grounds: Grounds) -> RuleResult:
    """The payback's whole interval and the forecast's P95 lie within the horizon; wholly beyond it is a failure."""
    rule: RuleName = "payback_within_horizon"
    horizon = grounds.terms.now.policy.horizon_months
    asked = f"the pilot pays for itself within {plain(horizon)} months, at the worse end and at the 95th percentile"
    example = grounds.terms.example and isinstance(grounds.confirmation.outcome, Confirmed)
    paid = grounds.payback
    if isinstance(paid, PaybackNever):
        return Failed(rule=rule, asked=asked, seen=f"never: {paid.why}", example=example)
    if not isinstance(paid, Payback):
        return Unknown(rule=rule, asked=asked, seen=paid.why, example=example, settled_by=paid.settled_by)
    drawn = paid.forecast
    seen = (
        f"{number(paid.months_middle)} months ({number(paid.months_low)} to {number(paid.months_high)}): "
        f"{usd(paid.pilot_usd)} spent, {usd(paid.saved_usd_per_month.middle)} saved a month; with calls, price and "
        f"hours as uncertain as the terms say P95 is {number(drawn.p95)} months, and {percent(drawn.within_horizon)} "
        "of the draws lie within the horizon"
    )
    if max(paid.months_high, drawn.p95) <= horizon:
        return Passed(rule=rule, asked=asked, seen=seen, example=example)
    if paid.months_low > horizon and drawn.p5 > horizon:
        return Failed(rule=rule, asked=asked, seen=seen, example=example)
    settled = "surer calls and prices (workload.uncertainty), or a new trial with more confirmation processes"
    return Unknown(rule=rule, asked=asked, seen=seen, example=example, settled_by=settled)


def prize_worth_trying(grounds: Grounds) -> RuleResult:
    """The most that any kernel could save pays back the people's cost within the horizon."""
    rule: RuleName = "prize"
    horizon = plain(grounds.terms.now.policy.horizon_months)
    asked = f"the most that any kernel could save pays for the pilot's people within {horizon} months"
    known, example = grounds.prize.prize, grounds.prize.example
    if isinstance(known, UnknownPrize):
        return Unknown(rule=rule, asked=asked, seen=known.why, example=False, settled_by=known.settled_by)
    seen = f"at most {usd(known.saved_usd_per_month)} a month, and {usd(known.needed_usd_per_month)} a month is needed"
    if known.can_pay_back:
        return Passed(rule=rule, asked=asked, seen=seen, example=example)
    return Failed(rule=rule, asked=asked, seen=seen, example=example)


def own_terms(grounds: Grounds) -> RuleResult:
    """Workload and prices are the user's own, and the prices' source is named; others can never lead to GO."""
    rule: RuleName = "own_terms"
    asked = "the calls, hours and prices of your own team"
    why = grounds.terms.now.why_example
    if not why:
        seen = f"the config says that they are; prices from {grounds.terms.now.prices.source.strip()}"
        return Passed(rule=rule, asked=asked, seen=seen, example=False)
    settled = (
        "put your own figures under workload and prices in the config, say in prices.source where the prices come "
        "from, and set workload.example to false"
    )
    return Unknown(rule=rule, asked=asked, seen=f"an example's figures: {why}", example=False, settled_by=settled)


def reviewer_receipt(grounds: Grounds) -> RuleResult:
    """Someone outside the trial signed for the lock and for the terms in force, or the policy does not ask for it."""
    rule: RuleName = "reviewer_receipt"
    asked = "a reviewer's signature under the lock and the terms, from before the first proposal"
    receipt, policy = grounds.receipt, grounds.terms.now.policy
    if isinstance(receipt, Receipt):
        seen = f"signed by {receipt.reviewer}"
        versions = {digest(canonical(v)): v for v in (grounds.terms.first, *grounds.terms.amendments)}
        signed = versions.get(receipt.terms)
        other = _changed(signed, grounds.terms.now) if signed else "terms"
        if not other:
            return Passed(rule=rule, asked=asked, seen=seen, example=False)
        were = "was" if other in ("policy", "workload") else "were"
        seen += f", but {other} {were} changed afterwards"
        settled = f"put back the {other} that {were} signed, or have a new trial signed with it"
        return Unknown(rule=rule, asked=asked, seen=seen, example=False, settled_by=settled)
    if not policy.require_receipt:
        return Passed(rule=rule, asked=asked, seen="none, and the policy does not ask for one", example=False)
    settled = "hand the lock to a reviewer before the first proposal of a new trial"
    return Unknown(rule=rule, asked=asked, seen=receipt.why, example=False, settled_by=settled)


def _changed(signed: Agreed, in_force: Agreed) -> str:
    """Which of the figures that a decision rests on are not those that were signed, in words; or nothing.

    A floor is waived once its case was looked into, so that waiver alone may come after the signature. How many
    iterations are made may change too: whoever wins is judged and measured afresh.
    """
    first, now = (
        msgspec.structs.replace(one.policy, waive_floor=(), accept_unseen=msgspec.UNSET) for one in (signed, in_force)
    )
    pairs = {
        "policy": (first, now),
        "workload": (signed.workload, in_force.workload),
        "prices": (signed.prices, in_force.prices),
    }
    return " and ".join(name for name, (then, later) in pairs.items() if then != later)
