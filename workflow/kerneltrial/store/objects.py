"""Content-addressed objects: sources, PTX, cubins, logs, replies. Written once, read-only, found by digest."""

from pathlib import Path

from kerneltrial.store.canonical import digest
from kerneltrial.store.files import write_once
from kerneltrial.store.problem import StoreProblem


class Objects:
    """The objects of one trial, under `root`/sha256/ab/cdef…"""

    def __init__(self, root: Path) -> None:
        self.root = root / "sha256"

    def path(self, name: str) -> Path:
        return self.root / name[:2] / name[2:]

    def put(self, data: bytes) -> str:
        """Store `data`, if it is not there yet, and return its digest."""
        name = digest(data)
        if not self.path(name).exists():
            write_once(self.path(name), data)
        return name

    def get(self, name: str) -> bytes:
        """The bytes with this digest; raise StoreProblem where they are missing or are not what they were."""
        try:
            data = self.path(name).read_bytes()
        except FileNotFoundError:
            raise StoreProblem(
                f"object {name} is missing ({self.path(name)}); restore it, or rerun the trial"
            ) from None
        if digest(data) != name:
            raise StoreProblem(f"object {name} was changed ({self.path(name)}); restore it from a copy")
        return data

    def names(self) -> list[str]:
        """Digests of all objects, sorted."""
        return sorted(p.parent.name + p.name for p in self.root.glob("??/*") if not p.name.startswith("."))
