"""Who goes on after validation, and why the others do not."""

from kerneltrial.records.reason import Skipped
from kerneltrial.records.validation import Invalid, SkippedCandidate, Unchecked, Validated


def skipped_after(verdict: Validated | Invalid | Unchecked | SkippedCandidate) -> SkippedCandidate:
    """The entry of a later stage for a candidate that was not found valid."""
    if isinstance(verdict, SkippedCandidate):
        return verdict
    if isinstance(verdict, Validated):
        raise ValueError(f"candidate {verdict.candidate[:12]} is valid, nothing is to be skipped")
    return SkippedCandidate(candidate=verdict.candidate, skipped=Skipped(stage="validate", reason=verdict.reason))
