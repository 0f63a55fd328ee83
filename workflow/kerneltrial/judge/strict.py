"""The same PTX on the `cpu` device, beside a card: what a card cannot see.

A card takes blocks in an order of its own, and mostly the same one; what one block reads of another may then be right
in every run, as may a wait for a block that a smaller card would start too late. The `cpu` device knows races between
blocks, takes blocks and warps in other orders, and knows each byte that was never written. It looks at the cases that
are cheap enough for it. A candidate that it cannot run, for an instruction that it does not know, needs a person's
look: else one odd instruction would be all that it takes not to be looked at.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from kerneltrial.records.reason import Finding, Reason
from kerneltrial.records.sanitizer import BETWEEN_BLOCKS, CPU_DEVICE
from kerneltrial.records.validation import Invalid, Unchecked, Validated

_SEES: Final = (
    "races between blocks, what hangs on their order, waits that may have no end, reads of what was never written"
)


def with_word(
    outcome: Validated, strict: Validated | Invalid | Unchecked, left_out: Iterable[str] = ()
) -> Validated | Invalid:
    """The card's outcome with the `cpu` device's word in it; `left_out` are cases that were too large for it."""
    if isinstance(strict, Unchecked):
        # Too large, or no LLVM here, is nobody's doing; what it does not know, or what ends it, is the candidate's.
        reason = Reason.CHECK_ABSENT if strict.reason is Reason.CHECK_ABSENT else Reason.NEEDS_REVIEW
        return _open(outcome, f"the cpu device did not look ({strict.detail}): {_SEES}", reason)
    checks = (*outcome.checks, CPU_DEVICE)
    unchecked = tuple(finding for finding in outcome.unchecked if finding != BETWEEN_BLOCKS)
    if isinstance(strict, Invalid):
        return Invalid(
            candidate=outcome.candidate,
            reason=strict.reason,
            detail=f"on the cpu device, which runs the same PTX: {strict.detail}",
            cases=outcome.cases,
            checks=checks,
            unchecked=unchecked,
        )
    seen = msgspec.structs.replace(outcome, checks=checks, unchecked=unchecked)
    for finding in strict.unchecked:
        if finding.reason is not Reason.CHECK_ABSENT or finding.detail not in _details(outcome):
            seen = _open(seen, f"on the cpu device: {finding.detail}", finding.reason)
    names = list(left_out)
    if not names:
        return seen
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return _open(seen, f"{_SEES}, in {shown}: too large for the cpu device")


def _details(outcome: Validated) -> frozenset[str]:
    return frozenset(finding.detail for finding in outcome.unchecked)


def _open(outcome: Validated, detail: str, reason: Reason = Reason.CHECK_ABSENT) -> Validated:
    finding = Finding(reason=reason, detail=detail)
    return msgspec.structs.replace(outcome, unchecked=(*outcome.unchecked, finding))
