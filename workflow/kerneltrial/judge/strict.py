"""The same PTX on the `cpu` device, beside a card: what a card cannot see.

A card takes blocks in an order of its own, and mostly the same one; what one block reads of another may then be right
in every run, as may a wait for a block that a smaller card would start too late. The `cpu` device knows races between
blocks, takes blocks and warps in other orders, and knows each byte that was never written. It looks at the cases that
are cheap enough for it; what it cannot run stays unchecked.
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
        return _open(outcome, f"the cpu device did not look ({strict.detail}): {_SEES}")
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
    names = list(left_out)
    if not names:
        return seen
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return _open(seen, f"{_SEES}, in {shown}: too large for the cpu device")


def _open(outcome: Validated, detail: str) -> Validated:
    finding = Finding(reason=Reason.CHECK_ABSENT, detail=detail)
    return msgspec.structs.replace(outcome, unchecked=(*outcome.unchecked, finding))
