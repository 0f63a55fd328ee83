"""What compute-sanitizer writes, read: a report is a line with words at its margin and the indented lines below it.

The format is the one of its manual ("Understanding Memcheck Errors" and its like). What is not known here is no report
of the candidate and is kept in its own words: never clean.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kerneltrial.records.reason import Finding, Reason

Buffers = Mapping[int, tuple[str, int]]
"""By address: the name of the buffer that lies there, and its bytes."""

_SHOWN: Final = 3  # reports in words; further ones are counted
_LONGEST: Final = 600
_LINE: Final = re.compile(r"^=+ ?(.*)$")
_SUMMARY: Final = re.compile(r"^(?:RACECHECK |INITCHECK )?(?:ERROR )?SUMMARY: (\d+) (?:errors?|hazards? displayed)\b")
_THREAD: Final = re.compile(r"by thread (\([\d,]+\)) in block (\([\d,]+\))")
_NEAREST: Final = re.compile(
    r"and is (?:([\d,]+) bytes? (after|before)|inside) the nearest allocation at (0x[0-9a-f]+) of size ([\d,]+) bytes"
)
_ADDRESS: Final = re.compile(r"(?:Address|Access to|Access at) (0x[0-9a-f]+)(?: is ([a-z ]+?))?\.?$")
_SKIPPED: Final = ("Host Frame", "Saved host backtrace", "Device Frame", "in /", "LEAK SUMMARY")
_TROUBLE: Final = (
    "Error: process didn't",
    "Error: Target application",
    "Error: Could not",
    "Error: No attachable",
    "Error: Failed",
    "Target application returned an error",
    "Device not supported",
    "Internal Sanitizer",
    "Internal Sanitizer Error",
)
_KINDS: Final = (
    (re.compile(r"^Invalid __\w+__ "), Reason.OUT_OF_BOUNDS),
    (re.compile(r"^Uninitialized __\w+__ "), Reason.UNINITIALISED_READ),
    (re.compile(r"^Barrier error detected"), Reason.BARRIER_DIVERGENCE),
    (re.compile(r"^(?:Error: )?(?:Race reported|Potential \w+ hazard)"), Reason.SHARED_RACE),
    (re.compile(r"^Malloc/Free error"), Reason.DEVICE_FAULT),
    (re.compile(r"^(?:Error: )?(?:Warp|Lane|Hardware|Device) .*(?:exception|error|address)"), Reason.DEVICE_FAULT),
)  # fmt: skip
_PASSED_OVER: Final = re.compile(r"^(?:COMPUTE-SANITIZER|Program hit |Unused memory|Error: .*not printed|$)")
_WARNING: Final = re.compile(r"^Warning: ")


@dataclass
class Report:
    """One report: its first line, and those below it."""

    title: str
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        return " ".join((self.title, *self.lines))


@dataclass(frozen=True)
class Log:
    """A log, read: faults of the candidate, what the tool only warned of, and why it cannot be relied upon ("")."""

    faults: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    trouble: str


def read(text: str, buffers: Buffers) -> Log:
    """Read a log; addresses are told by the names of `buffers`, as they are others in the next run."""
    reports = list(_reports(text))
    faults: dict[Reason, list[Report]] = {}
    warned: list[Report] = []
    unknown: list[Report] = []
    summary: int | None = None
    trouble = ""
    for report in reports:
        counted = _SUMMARY.match(report.title)
        reason = _reason(report)
        if counted:
            summary = max(summary or 0, int(counted[1]))
        elif reason is not None:
            faults.setdefault(reason, []).append(report)
        elif _WARNING.match(report.title):
            warned.append(report)
        elif report.title.startswith(_TROUBLE):
            trouble = trouble or report.title
        elif not _PASSED_OVER.match(report.title):
            unknown.append(report)
    if summary is None:
        trouble = trouble or "it gave no summary"
    elif summary and not faults and not warned and not trouble:
        trouble = f"it counts {summary} errors and tells of none that is known here: {_own_words(unknown)}"
    return Log(
        faults=tuple(_finding(reason, found, buffers) for reason, found in faults.items()),
        warnings=tuple(_finding(Reason.CHECK_ABSENT, [report], buffers) for report in _different(warned)),
        trouble=trouble[:_LONGEST],
    )


def _reports(text: str) -> Iterator[Report]:
    report: Report | None = None
    for raw in text.splitlines():
        found = _LINE.match(raw.rstrip())
        if not found:
            continue
        words = found[1]
        if report is not None and words.startswith(" "):
            if words.strip():
                report.lines.append(words.strip())
            continue
        if report is not None:
            yield report
        report = Report(words.strip()) if words.strip() else None
    if report is not None:
        yield report


def _reason(report: Report) -> Reason | None:
    for pattern, reason in _KINDS:
        if pattern.match(report.title):
            misaligned = reason is Reason.OUT_OF_BOUNDS and any("is misaligned" in line for line in report.lines)
            return Reason.MISALIGNED if misaligned else reason
    return None


def _finding(reason: Reason, reports: list[Report], buffers: Buffers) -> Finding:
    """The first reports of one kind in words, alike ones once."""
    told = list(dict.fromkeys(_told(report, buffers) for report in reports))
    more = len(reports) - min(len(told), _SHOWN)
    counted = f" (and {more} more reports)" if more > 1 else " (and one more report)" if more else ""
    return Finding(reason=reason, detail="; ".join(told[:_SHOWN])[:_LONGEST] + counted)


def _told(report: Report, buffers: Buffers) -> str:
    """Kind, kernel, source line, thread, block, and where the address lies by buffer."""
    words = [report.title.rstrip(". :")]
    for line in report.lines:
        if not line.startswith(_SKIPPED):
            words.append(_line(line, buffers))
    return ", ".join(word for word in words if word)


def _line(line: str, buffers: Buffers) -> str:
    if nearest := _NEAREST.search(line):
        return _near(nearest, buffers)
    if address := _ADDRESS.search(line):
        inside = _inside(int(address[1], 16), buffers)
        return " ".join(word for word in (f"in {inside}" if inside else "", address[2] or "") if word)
    if thread := _THREAD.search(line):
        return f"thread {thread[1]}, block {thread[2]}"
    return line


def _near(nearest: re.Match[str], buffers: Buffers) -> str:
    at, size = int(nearest[3], 16), nearest[4].replace(",", "")
    name = buffers[at][0] if at in buffers else "an allocation"
    if nearest[2] is None:
        return f"inside {name} ({size} bytes)"
    return f"{nearest[1].replace(',', '')} bytes {nearest[2]} {name} ({size} bytes)"


def _inside(address: int, buffers: Buffers) -> str:
    for at, (name, size) in buffers.items():
        if at <= address < at + size:
            return f"{name} at byte {address - at}"
    return ""


def _different(reports: Iterable[Report]) -> list[Report]:
    """Alike ones once, and no more than are shown."""
    return list({report.text(): report for report in reports}.values())[:_SHOWN]


def _own_words(reports: list[Report]) -> str:
    return "; ".join(report.text() for report in reports[:_SHOWN]) or "nothing"
