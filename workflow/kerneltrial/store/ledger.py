"""Ledgers: every version of something that may be amended, in order; never removed, a repeat adds nothing."""

from pathlib import Path
from typing import TypeVar

from kerneltrial.records.record import Record
from kerneltrial.store.canonical import canonical, decode
from kerneltrial.store.files import write_atomic
from kerneltrial.store.problem import StoreProblem

T = TypeVar("T", bound=Record)


def versions(path: Path, type_: type[T]) -> list[T]:
    """All versions so far, oldest first."""
    try:
        return [decode(type_, raw) for raw in path.read_bytes().splitlines()] if path.exists() else []
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
