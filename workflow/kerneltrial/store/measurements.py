"""Measurements are written once: what was measured under a key is found again by reruns, kills and replays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from kerneltrial.records.record import Record
from kerneltrial.store.canonical import builtins, canonical, convert, decode, digest
from kerneltrial.store.files import write_once
from kerneltrial.store.problem import StoreProblem

T = TypeVar("T", bound=Record)


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
        entry = decode(Entry, data)
        if canonical(entry.key) != canonical(key):
            raise StoreProblem(
                f"{path}: holds the measurement of another key; restore the file, or remove it to measure anew"
            )
        return Stored(value=convert(type_, entry.value), digest=digest(data))

    def all(self, type_: type[T]) -> list[T]:
        """Values of all entries, in order of their keys' digests."""
        paths = sorted(p for p in self.root.glob("*.json") if not p.name.startswith("."))
        return [convert(type_, decode(Entry, path.read_bytes()).value) for path in paths]
