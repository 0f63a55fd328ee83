"""Loads that may give older bytes than memory holds: told by the PTX alone."""

import re
from typing import Final

from kerneltrial.records.reason import Finding, Reason

_NONCOHERENT: Final = re.compile(r"\bld\.global\.(?:\w+\.)*nc\b")


def stale_in_place(ptx: str) -> tuple[Finding, ...]:
    """What is open where an output lies in an input's memory and the binary has such loads."""
    if not _NONCOHERENT.search(ptx):
        return ()
    detail = (
        "loads by ld.global.nc (__ldg, or an input that is const and __restrict__) where an output lies in an "
        "input's memory: a card may give older bytes another time"
    )
    return (Finding(reason=Reason.CHECK_ABSENT, detail=detail),)
