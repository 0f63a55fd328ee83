"""The journal: one fragment a stage and iteration; each line carries the digest of the one before it.

Wall-clock times, host names and resource use live here and in usage entries only.
"""

from pathlib import Path
from typing import Any

from kerneltrial.store.canonical import canonical, digest
from kerneltrial.store.files import write_atomic
from kerneltrial.store.lines import Chained, chained
from kerneltrial.store.problem import StoreProblem


class Line(Chained):
    """One event."""

    event: dict[str, Any]


def read(path: Path) -> list[Line]:
    """All lines; raise StoreProblem where the chain is broken."""
    try:
        return chained(path.read_bytes() if path.exists() else b"", Line)
    except ValueError as error:
        raise StoreProblem(f"{path}: is not the journal that was written ({error})") from error


def append(path: Path, event: dict[str, Any]) -> None:
    """Add one event to a fragment, atomically."""
    known = read(path)
    previous = digest(canonical(known[-1])) if known else ""
    write_atomic(path, b"".join(canonical(x) for x in [*known, Line(previous=previous, event=event)]))
