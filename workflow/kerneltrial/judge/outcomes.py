"""How findings become a candidate's outcome, in words."""

from collections.abc import Sequence

from kerneltrial.records.reason import Finding, ReasonClass
from kerneltrial.records.record import Digest
from kerneltrial.records.validation import CaseVerdict, Invalid, Unchecked, Validated


def review(seen: Sequence[Finding], ways: Sequence[Finding], outcome: Validated | Unchecked) -> str:
    """What a person must look at: what the screen has `seen`, and ways through the plan that nothing took."""
    here = f"not judged here ({outcome.detail})" if isinstance(outcome, Unchecked) else "right in every case"
    words = f"{here}, and a person must look: {'; '.join(finding.detail for finding in (*seen, *ways))}"
    if not seen:
        return words
    allow = "a new trial can say so in its config (protocol.screening, allow)"
    return (
        f"{words}. Where what the screen saw is harmless, {allow}"
        if ways
        else f"{words}. Where that is harmless, {allow}"
    )


def placed(finding: Finding, verdicts: Sequence[CaseVerdict]) -> Finding:
    """The finding with the case that showed it, and its dimensions."""
    at = next((v for v in verdicts if finding in v.findings), None)
    if at is None:
        return finding
    sizes = ", ".join(f"{name}={size}" for name, size in at.dimensions.items())
    return Finding(reason=finding.reason, detail=f"case {at.case} ({sizes}): {finding.detail}")


def outcome_of(
    identity: Digest,
    finding: Finding,
    verdicts: Sequence[CaseVerdict],
    checks: tuple[str, ...],
    unchecked: tuple[Finding, ...],
) -> Invalid | Unchecked:
    """Invalid where the finding is the candidate's, else unchecked: a fault of the ground never counts against it."""
    if finding.reason.reason_class is ReasonClass.CANDIDATE:
        return invalid(identity, finding, verdicts, checks, unchecked)
    return Unchecked(candidate=identity, reason=finding.reason, detail=finding.detail)


def invalid(
    identity: Digest,
    finding: Finding,
    verdicts: Sequence[CaseVerdict],
    checks: tuple[str, ...],
    unchecked: tuple[Finding, ...],
) -> Invalid:
    return Invalid(
        candidate=identity,
        reason=finding.reason,
        detail=finding.detail,
        cases=tuple(verdicts),
        checks=checks,
        unchecked=unchecked,
    )
