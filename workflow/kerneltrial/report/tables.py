"""The attempts table and its trend, as pandas frames: what history.json, the plot and the page show."""

from typing import TYPE_CHECKING, Any

from kerneltrial.decide.standing import Fate, Standing
from kerneltrial.records.decision import Decision
from kerneltrial.records.proposal import Unusable
from kerneltrial.records.residency import AsStated
from kerneltrial.records.timing import CaseCounts, CaseLatency
from kerneltrial.report.inputs import ReportInputs

if TYPE_CHECKING:
    import pandas as pd


def attempts(inputs: ReportInputs) -> "pd.DataFrame":
    """One row an attempt, in order.

    `figure` is the geometric mean of speedups (of count ratios on `cpu`), NaN where there is none; `best_so_far` is the
    best figure of those that held up to this attempt.
    """
    import pandas as pd

    rewards = {milestone.candidate: milestone.reward for milestone in inputs.decision.milestones}
    listed = [_row(standing, inputs, rewards) for standing in inputs.standings]
    frame = pd.DataFrame(listed, columns=list(_COLUMNS), dtype=object)
    frame["figure"] = frame["figure"].astype(float)
    frame["best_so_far"] = frame["figure"].where(frame["fate"] == Fate.HELD.value).cummax().ffill()
    return frame


def trend(table: "pd.DataFrame") -> "pd.DataFrame":
    """One row an iteration: how many attempts came how far, and the best so far at its end."""
    grouped = table.groupby("iteration", sort=True)
    counts = grouped[["proposed", "built", "valid", "held"]].sum().astype(int)
    counts.insert(0, "attempts", grouped.size())
    counts["best_so_far"] = grouped["best_so_far"].last()
    return counts.reset_index()


def patterns(table: "pd.DataFrame") -> "pd.DataFrame":
    """One row a kind of idea: how many candidates of it came how far, and the best figure of those that held.

    Kinds are as proposers tag them; the best comes first.
    """
    proposed = table[table["proposed"].astype(bool)].copy()
    proposed["best"] = proposed["figure"].where(proposed["fate"] == Fate.HELD.value)
    grouped = proposed.groupby("pattern", sort=True)
    counts = grouped[["proposed", "built", "valid", "held"]].sum().astype(int)
    counts["best"] = grouped["best"].max()
    return counts.reset_index().sort_values("best", ascending=False, kind="stable", na_position="last")


def totals(table: "pd.DataFrame") -> dict[str, int]:
    """How many attempts came how far, over the whole trial."""
    sums = table[["proposed", "built", "valid", "held"]].sum()
    return {"attempts": len(table), **{str(name): int(count) for name, count in sums.items()}}


def caught(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """How many candidates were turned away, by reason, the most frequent first."""
    lost = table[table["proposed"].astype(bool) & (table["reason"] != "")]
    counts = lost.groupby("reason", sort=True).size().sort_values(ascending=False, kind="stable")
    return [{"reason": str(reason), "count": int(count)} for reason, count in counts.items()]


def rows(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    """A frame as JSON types: NaN becomes null."""
    import pandas as pd

    plain = frame.astype(object)
    return [
        {str(name): None if pd.api.types.is_float(value) and pd.isna(value) else value for name, value in row.items()}
        for row in plain.to_dict("records")
    ]


_COLUMNS = (
    "attempt",
    "iteration",
    "candidate",
    "language",
    "pattern",
    "hypothesis",
    "parents",
    "parameters",
    "fate",
    "reason",
    "detail",
    "proposed",
    "built",
    "valid",
    "held",
    "figure",
    "cases",
    "milestone",
)


def _row(standing: Standing, inputs: ReportInputs, rewards: dict[str, int]) -> dict[str, Any]:
    attempt = standing.attempt
    origin = None if isinstance(attempt, Unusable) else attempt.origin
    candidate = inputs.candidates.get(standing.candidate)
    figures = standing.figures
    return {
        "attempt": standing.number,
        "iteration": standing.iteration,
        "candidate": standing.candidate,
        "language": candidate.language if candidate else "",
        "pattern": origin.pattern if origin else "",
        "hypothesis": origin.hypothesis if origin else "",
        "parents": list(origin.parents) if origin else [],
        "parameters": origin.parameters if origin else {},
        "fate": standing.fate.value,
        "reason": standing.reason.value if standing.reason else "",
        "detail": standing.detail,
        "proposed": standing.proposed,
        "built": standing.built,
        "valid": standing.valid,
        "held": standing.held,
        "figure": figures.geometric_mean if figures else None,
        "cases": [case_figures(case) for case in figures.cases] if figures else [],
        "milestone": rewards.get(standing.candidate) if standing.proposed else None,
    }


def case_figures(case: CaseLatency | CaseCounts) -> dict[str, Any]:
    """The figures of one performance case as JSON types."""
    if isinstance(case, CaseCounts):
        return {
            "case": case.case,
            "score": case.score,
            "baseline_score": case.baseline_score,
            "count_ratio": case.ratio,
        }
    stated = case.stated
    own = (
        {"stated_us": stated.us, "baseline_stated_us": stated.baseline_us, "stated_speedup": stated.speedup.middle}
        if isinstance(stated, AsStated)
        else {}
    )
    return {
        **own,
        "case": case.case,
        "clock": case.clock,
        "warm_us": case.warm_us,
        "cold_us": case.cold_us,
        "baseline_warm_us": case.baseline_warm_us,
        "speedup": case.speedup.middle,
        "speedup_low": case.speedup.low,
        "speedup_high": case.speedup.high,
        "confidence": case.speedup.confidence,
    }


def failed_and_unknown(decision: Decision) -> dict[str, list[str]]:
    """Names of rules by result."""
    names: dict[str, list[str]] = {"failed": [], "unknown": [], "passed": []}
    for rule in decision.rules:
        names[type(rule).__name__.lower()].append(rule.rule)
    return names
