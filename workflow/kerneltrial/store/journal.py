"""The journal: one fragment a stage and iteration; each line carries the digest of the one before it.

Wall-clock times, host names and resource use live here and in usage entries only.
"""

from pathlib import Path
from typing import Any

from kerneltrial.records.record import Record
from kerneltrial.store.canonical import canonical, decode, digest
from kerneltrial.store.files import write_atomic
from kerneltrial.store.problem import StoreProblem


class Line(Record):
    """One event; `previous` is the digest of the line before, empty for the first."""

    previous: str
    event: dict[str, Any]


def read(path: Path) -> list[Line]:
    """All lines; raise StoreProblem where the chain is broken."""
    lines: list[Line] = []
    previous = ""
    for number, raw in enumerate(path.read_bytes().splitlines() if path.exists() else [], start=1):
        try:
            line = decode(Line, raw)
        except ValueError as error:
            raise StoreProblem(f"{path}: line {number} is not a journal line ({error})") from error
        if line.previous != previous:
            raise StoreProblem(
                f"{path}: line {number} does not follow the one before it; a line was changed or removed"
            )
        lines.append(line)
        previous = digest(canonical(line))
    return lines


def append(path: Path, event: dict[str, Any]) -> None:
    """Add one event to a fragment, atomically."""
    lines = read(path)
    previous = digest(canonical(lines[-1])) if lines else ""
    write_atomic(path, b"".join(canonical(x) for x in [*lines, Line(previous=previous, event=event)]))
