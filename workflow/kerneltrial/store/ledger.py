"""Ledgers: every version of something that may be amended, in order; never removed, a repeat adds nothing."""

from pathlib import Path
from typing import TypeVar

from kerneltrial.records.record import Record
from kerneltrial.store.canonical import canonical
from kerneltrial.store.files import write_atomic
from kerneltrial.store.lines import lines
from kerneltrial.store.problem import StoreProblem

T = TypeVar("T", bound=Record)


def versions(path: Path, type_: type[T]) -> list[T]:
    """All versions so far, oldest first."""
    try:
        return [value for _, _, value in lines(path.read_bytes() if path.exists() else b"", type_)]
    except ValueError as error:
        raise StoreProblem(
            f"{path}: cannot be read ({error}); it was edited, or written by another version of kerneltrial: "
            "restore it, or start a new trial by `kerneltrial lock --new`"
        ) from error


def record(path: Path, value: T) -> list[T]:
    """Append `value` where it differs from the last version; return all versions."""
    known = versions(path, type(value))
    if not known or canonical(known[-1]) != canonical(value):
        known.append(value)
        write_atomic(path, b"".join(canonical(version) for version in known))
    return known
