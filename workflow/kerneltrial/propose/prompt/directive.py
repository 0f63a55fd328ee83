"""What the model is asked to do next: repair, one change, or a different approach. Pure, from the attempts alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kerneltrial.propose.prompt.attempts import WAS_RIGHT, Told

Kind = Literal["begin", "repair", "one_change", "different"]

PLATEAU = 3  # attempts without progress that end a line of thought
PROGRESS = 1.01  # what counts as progress: one percent more than the best before
REPAIRS = 2  # how often in a row a failure is sent back for repair


@dataclass(frozen=True)
class Directive:
    """`parent` is the attempt whose source is shown and is to be changed; None is the baseline.

    `others` were measured and are not the best, in order of how good they are.
    """

    kind: Kind
    parent: Told | None
    best: Told | None
    others: tuple[Told, ...] = ()


def direct(attempts: Sequence[Told]) -> Directive:
    """Return the one directive.

    A failure is repaired, at most `REPAIRS` times in a row. After `PLATEAU` attempts without progress a different
    approach is asked for, which starts at the baseline. Else the best gets one change.
    """
    best = best_of(attempts)
    others = others_than(best, attempts)
    if not attempts:
        return Directive("begin", None, None)
    last = attempts[-1]
    failures = _failures_in_a_row(attempts)
    if 1 <= failures <= REPAIRS:
        return Directive("repair", last if last.candidate is not None else best, best, others)
    if best is None or failures or on_plateau(attempts):
        return Directive("different", best, best, others)
    return Directive("one_change", best, best, others)


def best_of(attempts: Sequence[Told]) -> Told | None:
    """The best measured attempt; of equals one with figures (a program's try has none), then the earlier."""
    return max((t for t in attempts if t.state == "measured"), key=lambda t: (t.ratio, bool(t.figures)), default=None)


def on_plateau(attempts: Sequence[Told]) -> bool:
    """Whether the last `PLATEAU` right attempts brought no progress over what stood before them.

    What a program tried and then proposed is one of them.
    """
    right = [t.ratio for t in _once(attempts) if t.state in WAS_RIGHT or t.state == "duplicate"]
    before, last = right[:-PLATEAU], right[-PLATEAU:]
    return bool(before) and max(last) < max(before) * PROGRESS


def _once(attempts: Sequence[Told]) -> list[Told]:
    """The attempts without those of a candidate that stands among them already; a duplicate has none."""
    seen: set[str] = set()
    kept = []
    for attempt in attempts:
        name = attempt.candidate.id if attempt.candidate is not None else ""
        if name not in seen:
            kept.append(attempt)
        seen.update([name] if name else [])
    return kept


def others_than(best: Told | None, attempts: Sequence[Told]) -> tuple[Told, ...]:
    """The measured attempts of other candidates than `best`, the best first; each candidate once."""
    by_candidate: dict[str, list[Told]] = {}
    for attempt in attempts:
        if attempt.state == "measured" and attempt.candidate is not None:
            by_candidate.setdefault(attempt.candidate.id, []).append(attempt)
    if best is not None and best.candidate is not None:
        by_candidate.pop(best.candidate.id, None)
    kept = [found for same in by_candidate.values() if (found := best_of(same)) is not None]
    return tuple(sorted(kept, key=lambda t: -t.ratio))


def structure(attempt: Told) -> tuple[object, ...]:
    """What makes two kernels different in kind, as their plans tell: language, launches, scratch, shared memory."""
    candidate, built = attempt.candidate, attempt.built
    if candidate is None:
        return ()
    launches = tuple(
        tuple((launch.cooperative, launch.cluster, launch.shared_bytes != "0") for launch in variant.launches)
        for variant in candidate.plan.variants
    )
    shared = built is not None and any(entry.shared_bytes for entry in built.entries)
    return (candidate.language, launches, len(candidate.plan.scratch), shared)


def _failures_in_a_row(attempts: Sequence[Told]) -> int:
    count = 0
    for attempt in reversed(attempts):
        if not attempt.failed:
            break
        count += 1
    return count
