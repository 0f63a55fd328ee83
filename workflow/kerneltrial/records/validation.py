"""A validation: is each candidate right, as far as could be checked?"""

from kerneltrial.records.reason import Finding, Reason, Skipped
from kerneltrial.records.record import Count, Digest, Record


class ErrorMeasure(Record):
    """The worst element of one output over the draws of a case. `worst_index` is row-major.

    `bound_share` is error over what the contract allows; `baseline_share` is the same for the baseline.
    """

    output: str
    worst_error: float
    bound_share: float
    baseline_share: float
    worst_index: tuple[Count, ...]


class CaseVerdict(Record):
    """`draws` were compared; findings name what was wrong, `checks` what was looked at, `unchecked` what was not."""

    case: str
    dimensions: dict[str, int]
    draws: Count
    valid: bool
    errors: tuple[ErrorMeasure, ...]
    findings: tuple[Finding, ...]


class Validated(Record, tag_field="state", tag="valid"):
    """Every check that ran has passed."""

    candidate: Digest
    cases: tuple[CaseVerdict, ...]
    checks: tuple[str, ...]
    unchecked: tuple[Finding, ...]


class Invalid(Record, tag_field="state", tag="invalid"):
    """At least one check failed; `reason` is the first."""

    candidate: Digest
    reason: Reason
    detail: str
    cases: tuple[CaseVerdict, ...]
    checks: tuple[str, ...]
    unchecked: tuple[Finding, ...]


class Unchecked(Record, tag_field="state", tag="unchecked"):
    """Correctness could not be established here; neither a pass nor the candidate's fault."""

    candidate: Digest
    reason: Reason
    detail: str


class SkippedCandidate(Record, tag_field="state", tag="skipped"):
    """An earlier stage ended this candidate's way."""

    candidate: Digest
    skipped: Skipped


class Validation(Record):
    """One entry a candidate, in the order of the proposal."""

    candidates: tuple[Validated | Invalid | Unchecked | SkippedCandidate, ...]
