"""Where the best candidate comes from: its source against its parent's."""

import difflib

from kerneltrial.records.proposal import Proposed
from kerneltrial.report.inputs import ReportInputs

_LONGEST = 60_000  # characters; what is longer is cut, and the sources themselves lie in the evidence


def difference(inputs: ReportInputs) -> str:
    """A unified difference of the best source and its first parent's; empty where there is none, or none differs."""
    best = inputs.best
    if best is None:
        return ""
    parents = next(
        (
            standing.attempt.origin.parents
            for standing in inputs.standings
            if isinstance(standing.attempt, Proposed) and standing.candidate == best.id
        ),
        (),
    )
    parent = inputs.candidates.get(parents[0]) if parents else None
    if parent is None or parent.source == best.source:
        return ""
    before, after = (inputs.source_of(one.source).decode(errors="replace").splitlines() for one in (parent, best))
    lines = difflib.unified_diff(before, after, f"parent {parent.id[:10]}", f"best {best.id[:10]}", lineterm="")
    text = "\n".join(lines)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "\n…"
