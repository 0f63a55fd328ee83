"""The same PTX on the `cpu` device, beside a card: what a card cannot see.

A card takes blocks in an order of its own, and mostly the same one; what one block reads of another may then be right
in every run, as may a wait for a block that a smaller card would start too late. The `cpu` device knows races between
blocks, takes blocks and warps in other orders, and knows each byte that was never written. It looks at the cases that
are cheap enough for it. A candidate that it cannot run, for an instruction that it does not know, needs a person's
look: else one odd instruction would be all that it takes not to be looked at.

Of what the card refused itself it says the cause: a card sees wrong numbers, a fault or no reply, and the `cpu` device
which threads raced, which byte was never written and which address was not the kernel's
(workflow/adr/0056-a-cause-beside-what-a-card-shows.md).
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
_SHOWS: Final = frozenset(
    {
        Reason.WRONG_VALUES,
        Reason.WRONG_NONFINITE,
        Reason.PRECISION_LOSS,
        Reason.INPUT_CHANGED,
        Reason.GUARD_OVERWRITTEN,
        Reason.DEVICE_FAULT,
        Reason.HANG,
    }
)
"""What a fault does that shows, whatever it is."""
_HANGS_ON: Final = frozenset({Reason.OUTPUT_NOT_WRITTEN, Reason.NOT_DETERMINISTIC})
"""Closer to it: what results hang on that they should not."""
_CAUSES: Final = frozenset(
    {
        Reason.OUT_OF_BOUNDS,
        Reason.MISALIGNED,
        Reason.READ_ONLY_WRITTEN,
        Reason.UNINITIALISED_READ,
        Reason.SHARED_RACE,
        Reason.GLOBAL_RACE,
        Reason.BARRIER_DIVERGENCE,
        Reason.DEADLOCK,
        Reason.ENDLESS_LOOP,
    }
)
"""What one thread did, and where."""
_NEARER: Final = (_SHOWS, _HANGS_ON, _CAUSES)


def with_cause(outcome: Invalid, strict: Validated | Invalid | Unchecked) -> Invalid:
    """The card's refusal, by the reason that the `cpu` device has for it where that is at least as near to the cause.

    Both details are kept, the card's first. The device's reason is the same whenever it looks; what a race shows on a
    card may be another thing each time.
    """
    shown = _nearness(outcome.reason)
    if not isinstance(strict, Invalid) or shown < 0 or _nearness(strict.reason) < max(shown, 1):
        return outcome
    detail = f"{outcome.detail}; on the cpu device, which runs the same PTX: {strict.detail}"
    checks = (*outcome.checks, CPU_DEVICE)
    return msgspec.structs.replace(outcome, reason=strict.reason, detail=detail, checks=checks)


def _nearness(reason: Reason) -> int:
    """0 for what shows, 2 for a cause; -1 for what is neither: a plan without a launch, a trap."""
    return next((near for near, reasons in enumerate(_NEARER) if reason in reasons), -1)


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
