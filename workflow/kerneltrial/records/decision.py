"""The decision: GO, NO-GO or INCONCLUSIVE, with a reason per rule and the figure behind it."""

from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta

from kerneltrial.records.record import Digest, Record

Outcome = Literal["GO", "NO-GO", "INCONCLUSIVE"]


class RuleResult(Record):
    """One rule. `figure` is what was seen against what is asked; `settled_by` says what would answer an unknown."""

    rule: str
    result: Literal["passed", "failed", "unknown"]
    figure: str
    settled_by: str


class Payback(Record, tag_field="state", tag="known"):
    """Months at the confirmed saving: the interval's ends and middle; and break-even calls a month at the horizon."""

    pilot_usd: Decimal
    saved_usd_per_month: Decimal
    months_low: Decimal
    months_middle: Decimal
    months_high: Decimal
    break_even_calls_per_month: int


class PaybackUnknown(Record, tag_field="state", tag="unknown"):
    """No payback is shown, and why."""

    pilot_usd: Decimal
    why: str


class Milestone(Record):
    """-1 wrong; +1 right; +2 faster than the baseline by 5 %; +3 faster than the compiler's kernel too."""

    candidate: Digest
    reward: Annotated[int, Meta(ge=-1, le=3)]


class Decision(Record):
    """Any rule failed: NO-GO; else any unknown: INCONCLUSIVE; else GO."""

    outcome: Outcome
    rules: tuple[RuleResult, ...]
    winner: Digest | None
    payback: Payback | PaybackUnknown
    milestones: tuple[Milestone, ...]
    post_hoc: bool
    example: bool
    stop: Literal["iterations", "space_exhausted", "prize"]
