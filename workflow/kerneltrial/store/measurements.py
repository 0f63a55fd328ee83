"""Measurements are written once: what was measured under a key is found again by reruns, kills and replays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from kerneltrial.records.record import Record
from kerneltrial.store.canonical import builtins, canonical, convert, decode, digest
from kerneltrial.store.files import write_once
from kerneltrial.store.problem import StoreProblem

T = TypeVar("T", bound=Record)
_REMEDY: Final = "restore the file, or remove it to measure anew, which `kerneltrial verify` tells of"


class Entry(Record):
    """One stored measurement: its key and what was drawn under it."""

    key: Any
    value: Any


class Stored(Record, Generic[T]):
    """A measurement's value and the digest of the file that holds it."""

    value: T
    digest: str


class Measurements:
    """The measurements of one trial, one file a key, under `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, key: object) -> Path:
        return self.root / f"{digest(canonical(key))}.json"

    def once(self, key: object, draw: Callable[[], T], type_: type[T]) -> Stored[T]:
        """The measurement under `key`; `draw` is called only where there is none. Whoever links first wins."""
        path = self.path(key)
        if not path.exists():
            write_once(path, canonical(Entry(key=builtins(key), value=builtins(draw()))))
        data = path.read_bytes()
        entry = _entry(path, data)
        if canonical(entry.key) != canonical(key):
            raise StoreProblem(f"{path}: holds the measurement of another key; {_REMEDY}")
        return Stored(value=_value(path, entry, type_), digest=digest(data))

    def all(self, type_: type[T]) -> list[T]:
        """Values of all entries, in order of their keys' digests."""
        paths = sorted(p for p in self.root.glob("*.json") if not p.name.startswith("."))
        return [_value(path, _entry(path, path.read_bytes()), type_) for path in paths]


def _entry(path: Path, data: bytes) -> Entry:
    try:
        return decode(Entry, data)
    except ValueError as error:
        raise StoreProblem(f"{path}: is not what was measured ({error}); {_REMEDY}") from error


def _value(path: Path, entry: Entry, type_: type[T]) -> T:
    try:
        return convert(type_, entry.value)
    except ValueError as error:
        raise StoreProblem(f"{path}: is not what was measured ({error}); {_REMEDY}") from error
