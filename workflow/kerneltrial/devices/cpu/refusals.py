"""How the `cpu` device says that it cannot run something: never an approximation, never a guess."""

from kerneltrial.devices.device import Refused
from kerneltrial.records.reason import Finding, Reason

_LONGEST = 300


def printable(text: str) -> str:
    """Text of a candidate as it may stand in a record: short, ASCII, no control characters."""
    return ascii(text[:_LONGEST])[1:-1]


def unsupported_instruction(what: str, line: int = 0) -> Refused:
    """An instruction that is not in the table; `line` is the source line, 0 where it is not known."""
    where = f" (source line {line})" if line else ""
    return Refused(
        Finding(reason=Reason.UNSUPPORTED_INSTRUCTION, detail=f"not checked on cpu: {printable(what)}{where}")
    )


def unsupported_feature(what: str) -> Refused:
    """A feature of PTX or of a launch that the device does not have."""
    return Refused(Finding(reason=Reason.UNSUPPORTED_FEATURE, detail=f"not checked on cpu: {printable(what)}"))


def unreadable(what: str) -> Refused:
    """PTX text that cannot be read."""
    return Refused(Finding(reason=Reason.UNSUPPORTED_FEATURE, detail=f"not checked on cpu: {printable(what)}"))


def launch_failed(what: str) -> Refused:
    """A launch that no GPU would accept: the candidate's fault."""
    return Refused(Finding(reason=Reason.LAUNCH_FAILED, detail=printable(what)))


def not_measured(what: str) -> Refused:
    """Something that the device does not count or time."""
    return Refused(Finding(reason=Reason.NOT_MEASURED, detail=printable(what)))
