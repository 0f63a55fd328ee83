"""The files for machines: decision.json, history.json, summary.json, and the best kernel with its plan."""

import json
from typing import TYPE_CHECKING, Any

from kerneltrial.records.candidate import Candidate
from kerneltrial.records.confirmation import Confirmed, NotTimed, NoWinner
from kerneltrial.records.decision import Payback, PaybackNever, Winner
from kerneltrial.report import words
from kerneltrial.report.amendments import changes
from kerneltrial.report.inputs import ReportInputs
from kerneltrial.report.tables import failed_and_unknown, patterns, rows, totals, trend
from kerneltrial.store.canonical import builtins

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1
_SUFFIX = {"cuda_cpp": ".cu", "numba_cuda": ".py"}


def pretty(value: object) -> bytes:
    """JSON for people: sorted keys, indented, decimals as strings, one newline at the end."""
    text = json.dumps(builtins(value), sort_keys=True, allow_nan=False, ensure_ascii=True, indent=1)
    return text.encode() + b"\n"


def decision(inputs: ReportInputs) -> dict[str, Any]:
    """The decision's record."""
    return {"schema_version": SCHEMA_VERSION, "trial": inputs.lock.trial, **builtins(inputs.decision)}


def history(inputs: ReportInputs, table: "pd.DataFrame") -> dict[str, Any]:
    """Every attempt, the trend over iterations, and which kinds of idea paid. `figure` is in `unit`, or null."""
    return {
        "schema_version": SCHEMA_VERSION,
        "trial": inputs.lock.trial,
        "unit": "speedup" if inputs.clocked else "count_ratio",
        "attempts": rows(table),
        "trend": rows(trend(table)),
        "patterns": rows(patterns(table)),
    }


def summary(inputs: ReportInputs, table: "pd.DataFrame") -> dict[str, Any]:
    """What a program wants to know first. Figures made from example terms carry `example_terms: true` beside them."""
    decided = inputs.decision
    names = failed_and_unknown(decided)
    return {
        "schema_version": SCHEMA_VERSION,
        "trial": inputs.lock.trial,
        "outcome": decided.outcome,
        "meaning": words.MEANING[decided.outcome],
        "failed_rules": names["failed"],
        "unknown_rules": names["unknown"],
        "stop": {"reason": decided.stop, "meaning": words.STOPS[decided.stop]},
        "counts": totals(table),
        "best": _best(inputs),
        "speed": _speed(inputs),
        "money": _money(inputs),
        "example_terms": decided.example,
        "post_hoc": decided.post_hoc,
        "amendments": [list(lines) for lines in changes(inputs.terms)],
        "device": builtins(inputs.lock.device),
    }


def best_files(inputs: ReportInputs) -> dict[str, bytes]:
    """The best candidate's source as it is, and its plan; nothing where there is no best."""
    best = inputs.best
    if best is None:
        return {}
    return {source_name(best): inputs.source_of(best.source), "best.plan.yaml": _plan(best)}


def source_name(best: Candidate) -> str:
    return f"best{_SUFFIX[best.language]}"


def _plan(best: Candidate) -> bytes:
    import yaml

    text: str = yaml.safe_dump(builtins(best.plan), sort_keys=False, width=100)
    return text.encode()


def _best(inputs: ReportInputs) -> dict[str, Any]:
    winner, best = inputs.decision.winner, inputs.best
    if not isinstance(winner, Winner) or best is None:
        return {"state": "none", "why": why_no_best(inputs)}
    return {
        "state": "there",
        "candidate": winner.candidate,
        "iteration": winner.iteration,
        "language": best.language,
        "source": source_name(best),
        "plan": "best.plan.yaml",
    }


def why_no_best(inputs: ReportInputs) -> str:
    """Why there is no best kernel, or nothing."""
    winner = inputs.decision.winner
    return "" if isinstance(winner, Winner) else winner.why


def _speed(inputs: ReportInputs) -> dict[str, Any]:
    outcome = inputs.confirmation.outcome
    if isinstance(outcome, NoWinner):
        return {"state": "none", "why": outcome.why}
    why = "; ".join(finding.detail for finding in outcome.findings)
    if isinstance(outcome, NotTimed) and inputs.clocked:
        return {"state": "not_measured", "why": why}
    figure = (
        {"speedup": builtins(outcome.geometric_mean)}
        if isinstance(outcome, Confirmed)
        else {"count_ratio": outcome.ratio}
    )
    if not outcome.valid:  # a figure of a kernel that was not right again is nobody's speedup
        return {"state": "not_right_again", "why": why, **figure}
    return {"state": "confirmed" if isinstance(outcome, Confirmed) else "counted", **figure}


def _money(inputs: ReportInputs) -> dict[str, Any]:
    decided = inputs.decision
    mark = {"example_terms": decided.example}
    payback = decided.payback
    pilot = {"pilot_usd": {"usd": payback.pilot_usd, **mark}}
    if not isinstance(payback, Payback):
        state = "never" if isinstance(payback, PaybackNever) else "unknown"
        return {**pilot, "payback": {"state": state, "why": payback.why, **mark}}
    saved, hours = payback.saved_usd_per_month, payback.gpu_hours_per_month
    months = {"low": payback.months_low, "middle": payback.months_middle, "high": payback.months_high}
    return {
        **pilot,
        "saved_usd_per_month": {**builtins(saved), **mark},
        "saved_gpu_hours_per_month": {**builtins(hours), **mark},
        "payback": {"state": "known", "months": months, **mark},
        "forecast": {**builtins(payback.forecast), **mark},
        "break_even_ms_per_call": {"ms": payback.break_even_ms_per_call, **mark},
        "break_even_calls_per_month": {"calls": payback.break_even_calls_per_month, **mark},
    }
