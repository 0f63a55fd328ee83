"""What was learnt so far, as the values of the feedback's template."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kerneltrial.propose.prompt.attempts import WAS_RIGHT, Read, Told
from kerneltrial.propose.prompt.directive import Directive, structure
from kerneltrial.propose.prompt.occupancy import occupancy_sentence
from kerneltrial.propose.prompt.quoted import one_line
from kerneltrial.propose.search.card import Card
from kerneltrial.records.lock import Lock
from kerneltrial.records.residency import AsStated
from kerneltrial.records.roofline import Share
from kerneltrial.records.timing import CaseCounts, CaseLatency
from kerneltrial.store.canonical import builtins

LINES = 60  # attempts that have a line of their own, the latest; those before are counted
ONE_LINE = 220
LOG_BYTES = 8_000  # of a compiler's log; the first error stands at its beginning
SOURCE_CHARACTERS = 100_000  # of a source: one that a server let grow without bound would be sent again in each prompt


@dataclass(frozen=True)
class Showing:
    """What is needed to show attempts."""

    lock: Lock
    read: Read
    card: Card
    baseline: str


def learnt(showing: Showing, attempts: Sequence[Told], directive: Directive) -> dict[str, Any]:
    """Return the values of `feedback.md.j2`, but for the iteration's number."""
    shown = attempts[-LINES:]
    best, parent = directive.best, directive.parent
    different = None if best is None else _different(showing, best, directive.others)
    return {
        "kind": directive.kind,
        "parent": None if parent is None else _whole(showing, parent),
        "best": None if best is None or best is parent else _whole(showing, best),
        "best_number": 0 if best is None else best.number,
        "different": None if different is None else _whole(showing, different),
        "lines": [_line(attempt) for attempt in shown],
        "before": len(attempts) - len(shown),
        "patterns": _patterns(attempts),
        "failure": _failure(showing, attempts),
    }


def _different(showing: Showing, best: Told, others: Sequence[Told]) -> Told | None:
    """The best that is built in another way: by its plan, or since less than half of its text is the best one's.

    The pattern of its hypothesis says nothing of that: one changed constant may be called an idea of any kind.
    """
    lines = _lines(showing, best)
    return next((o for o in others if structure(o) != structure(best) or _alike(lines, _lines(showing, o)) < 0.5), None)


def _alike(one: Counter[str], other: Counter[str]) -> float:
    """The share of the longer text's lines that stand in both."""
    return (one & other).total() / max(one.total(), other.total(), 1)


def _lines(showing: Showing, attempt: Told) -> Counter[str]:
    """The lines of an attempt's source that say anything: no brace alone."""
    assert attempt.candidate is not None  # only candidates are measured
    lines = (line.strip() for line in showing.read(attempt.candidate.source).decode().splitlines())
    return Counter(line for line in lines if len(line) > 3)


def _whole(showing: Showing, attempt: Told) -> dict[str, Any]:
    """An attempt with its whole source, plan, figures and what limits it."""
    candidate = attempt.candidate
    assert candidate is not None  # only candidates become parents
    return {
        "number": attempt.number,
        "state": _state(attempt),
        "language": candidate.language,
        "source": _cut(showing.read(candidate.source).decode().rstrip(), SOURCE_CHARACTERS),
        "plan": plan_text(candidate.plan),
        "hypothesis": attempt.origin.hypothesis,
        "figures": [_figure(case) for case in attempt.figures],
        "resources": _resources(attempt),
        "occupancy": _occupancy(showing, attempt),
        "profile": attempt.profile,
    }


def _cut(text: str, most: int) -> str:
    """A text of at most so many characters, and how many are left out."""
    return text if len(text) <= most else f"{text[:most]}\n... {len(text) - most} more characters"


def plan_text(plan: object) -> str:
    """A launch plan as the JSON that a reply holds."""
    return json.dumps(builtins(plan), ensure_ascii=False)


def _figure(case: CaseLatency | CaseCounts) -> str:
    if isinstance(case, CaseCounts):
        counts = case.counts
        return (
            f"{case.case}: score {case.score:,.0f}, the baseline's {case.baseline_score:,.0f} (ratio "
            f"{case.ratio:.3f}); {sum(counts.instructions.values()):,} thread instructions, "
            f"{counts.global_transactions:,} sectors of memory, {counts.shared_conflicts:,} shared-memory conflicts, "
            f"{counts.barriers:,} barriers"
        )
    limit = case.limit
    share = f"; {100 * limit.candidate:.0f} % of the limit ({limit.bound})" if isinstance(limit, Share) else ""
    stated = f", {case.stated.us:.4g} µs as production's L2 is" if isinstance(case.stated, AsStated) else ""
    return (
        f"{case.case}: {case.warm_us:.4g} µs warm, {case.cold_us:.4g} µs cold{stated}; the baseline "
        f"{case.baseline_warm_us:.4g} µs; speedup {case.speedup.middle:.3f}{share}"
    )


def _resources(attempt: Told) -> list[str]:
    entries = () if attempt.built is None else attempt.built.entries
    return [
        f"{e.name}: {e.registers} registers a thread, {e.spilled_bytes} bytes spilled, "
        f"{e.shared_bytes} bytes of static shared memory"
        for e in entries
    ]


def _occupancy(showing: Showing, attempt: Told) -> str:
    if attempt.candidate is None or attempt.built is None:
        return ""
    timed = [case for case in showing.lock.cases.cases if case.kind == "performance"]
    case = max(timed, key=lambda c: sum(c.dimensions.values()), default=None)
    if case is None:
        return ""
    contract = showing.lock.contract
    said = occupancy_sentence(attempt.candidate, attempt.built, contract, dict(case.dimensions), showing.card)
    return f"At {case.name}, {said}." if said else ""


def _state(attempt: Told) -> str:
    match attempt.state:
        case "measured":
            return f"right, {attempt.ratio:.3f} times the baseline"
        case "right":
            return f"right, not measured ({_reason(attempt)})"
        case "duplicate":
            return f"a duplicate: {attempt.detail}"
        case "unknown":
            return f"could not be judged ({_reason(attempt)})"
    return f"{attempt.state.replace('_', ' ')}: {_reason(attempt)}"


def _reason(attempt: Told) -> str:
    return attempt.reason.value if attempt.reason is not None else "no reason is known"


def _line(attempt: Told) -> str:
    """One attempt in one line, whatever its texts hold."""
    hypothesis = one_line(attempt.origin.hypothesis)
    detail = one_line(attempt.detail) if attempt.failed else ""
    words = [f"[{attempt.origin.pattern}]", _state(attempt), *([f"- {detail}"] if detail else [])]
    return f"{attempt.number}. {' '.join(words)[:ONE_LINE]} | {hypothesis[:ONE_LINE] or 'no hypothesis'}"


def _patterns(attempts: Sequence[Told]) -> list[str]:
    """Which kinds of idea paid: by pattern how many were tried, were right, and the best."""
    found = []
    for pattern in sorted({a.origin.pattern for a in attempts if a.candidate is not None}):
        of_it = [a for a in attempts if a.candidate is not None and a.origin.pattern == pattern]
        right = sum(a.state in WAS_RIGHT for a in of_it)
        best = max((a.ratio for a in of_it), default=0.0)
        paid = f"best {best:.3f} times the baseline" if best else "none was measured"
        found.append(f"{pattern}: {len(of_it)} tried, {right} right, {paid}")
    return found


def _failure(showing: Showing, attempts: Sequence[Told]) -> dict[str, Any] | None:
    """The last failure, as the compiler or the judge said it."""
    last = next((a for a in reversed(attempts) if a.failed), None)
    if last is None:
        return None
    log = showing.read(last.log).decode(errors="replace") if last.state == "not_built" and last.log else ""
    log, detail = _cut(log, LOG_BYTES), "" if log else _cut(last.detail, LOG_BYTES)
    return {
        "number": last.number,
        "state": _state(last),
        "detail": detail,
        "log": log,
        "unread": last.candidate is None,
    }
