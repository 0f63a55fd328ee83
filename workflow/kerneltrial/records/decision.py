"""The decision: GO, NO-GO or INCONCLUSIVE, with a result per rule and the figure behind it."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Literal, get_args

from msgspec import Meta

from kerneltrial.records.confirmation import NoWinner
from kerneltrial.records.cost import Spent
from kerneltrial.records.forecast import Forecast
from kerneltrial.records.record import Count, Digest, Record

Outcome = Literal["GO", "NO-GO", "INCONCLUSIVE"]
Stop = Literal["iterations", "space_exhausted", "prize", "budget", "beats_compiler"]
RuleName = Literal[
    "correct_on_public_cases",
    "held_on_holdout",
    "confirmed_speedup",
    "no_case_worse",
    "positive_saving",
    "measured_on_gpu",
    "vendor_not_faster",
    "independent_oracle",
    "end_to_end_evidence",
    "payback_within_horizon",
    "reviewer_receipt",
    "own_terms",
    "prize",
]
RULES: tuple[RuleName, ...] = get_args(RuleName)


class _Rule(Record):
    """What was asked and what was seen, in words with units; `example`: the figures rest on example terms."""

    rule: RuleName
    asked: str
    seen: str
    example: bool


class Passed(_Rule, tag_field="result", tag="passed"):
    """What was seen meets what is asked."""


class Failed(_Rule, tag_field="result", tag="failed"):
    """What was seen falls short of what is asked."""


class Unknown(_Rule, tag_field="result", tag="unknown"):
    """It cannot be told from what was seen; `settled_by` says what would answer it."""

    settled_by: str


RuleResult = Passed | Failed | Unknown


def verdict(rules: Sequence[RuleResult]) -> Outcome:
    """Any rule failed: NO-GO; else any unknown: INCONCLUSIVE; else GO (DESIGN.md section 8)."""
    if any(isinstance(rule, Failed) for rule in rules):
        return "NO-GO"
    if all(isinstance(rule, Passed) for rule in rules):
        return "GO"
    return "INCONCLUSIVE"


class Winner(Record, tag_field="state", tag="chosen"):
    """The best of those that were right and held; `geometric_mean` is of speedups, or of count ratios on `cpu`."""

    candidate: Digest
    iteration: Count
    measure: Literal["time", "counts"]
    geometric_mean: float


class Saving(Record):
    """GPU hours a month: calls times latency saved, at the ends and the middle of the speedup's interval."""

    low: Decimal
    middle: Decimal
    high: Decimal


class Payback(Record, tag_field="state", tag="known"):
    """Months until the confirmed saving has paid for the pilot.

    `basis`: milliseconds of the application's invocations, or derived from calls x latency of the kernel alone.

    `low` is the better end (the larger saving), `high` the worse. `break_even_calls_per_month` is how many calls a
    month, in the workload's mix, pay back in just `horizon_months` at the middle of the interval,
    `break_even_ms_per_call` how many milliseconds a call of that mix would have to save; on the basis `end_to_end` both
    speak of invocations.
    """

    basis: Literal["end_to_end", "derived"]
    pilot_usd: Decimal
    gpu_hours_per_month: Saving
    saved_usd_per_month: Saving
    months_low: Decimal
    months_middle: Decimal
    months_high: Decimal
    horizon_months: Decimal
    break_even_calls_per_month: Annotated[int, Meta(ge=0)]  # worked out: it may be more than anybody can call
    break_even_ms_per_call: Decimal
    forecast: Forecast


class PaybackNever(Record, tag_field="state", tag="never"):
    """Nothing is saved, even at the interval's better end."""

    pilot_usd: Decimal
    why: str


class PaybackUnknown(Record, tag_field="state", tag="unknown"):
    """No payback is shown, and why."""

    pilot_usd: Decimal
    why: str
    settled_by: str


class Milestone(Record):
    """-1 wrong; 0 could not be judged; +1 right; +2 faster than the baseline by 5 %; +3 than the compiler's too."""

    candidate: Digest
    reward: Annotated[int, Meta(ge=-1, le=3)]


class Decision(Record):
    """The outcome follows from the rules: a record in which it does not cannot be made or read."""

    outcome: Outcome
    rules: tuple[RuleResult, ...]
    winner: Winner | NoWinner
    spent: Spent
    payback: Payback | PaybackNever | PaybackUnknown
    milestones: tuple[Milestone, ...]
    post_hoc: bool
    example: bool
    stop: Stop

    def __post_init__(self) -> None:
        names = tuple(rule.rule for rule in self.rules)
        if names != RULES:
            raise ValueError(f"a decision has each rule once, in order; this one has {', '.join(names) or 'none'}")
        if self.outcome != verdict(self.rules):
            raise ValueError(f"the rules give {verdict(self.rules)}, not {self.outcome}")
        if self.outcome == "GO" and self.example:
            raise ValueError("example terms cannot lead to GO")
