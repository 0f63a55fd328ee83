"""Requests and their replies: written once under the request's digest, so that nothing is paid for twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from kerneltrial.records.record import Count, Digest, Record
from kerneltrial.store.canonical import canonical, decode, digest
from kerneltrial.store.files import write_once
from kerneltrial.store.problem import StoreProblem

Api = Literal["responses", "chat"]


class Request(Record):
    """What a model is asked; `body` is the JSON that is sent. It holds no time, no path, no run's name, no float.

    `sample` tells the same question asked again from the first time.
    """

    api: Api
    body: dict[str, Any]
    sample: Count

    @property
    def digest(self) -> Digest:
        """SHA-256 of the canonical form of API, body and sample."""
        return digest(canonical(self))


class Answered(Record, tag_field="state", tag="answered"):
    """The server's whole answer as text. `lost` tries before it may have been charged without an answer.

    `cut` says that the answer was longer than what is taken, and that its end is not here.
    """

    status: Count
    body: str
    lost: Count
    cut: bool = False


class Withheld(Record, tag_field="state", tag="withheld"):
    """It was never sent: its worst case was beyond the budget."""

    detail: str


class Exchange(Record):
    """A request and what became of it."""

    request: Request
    outcome: Answered | Withheld


class Exchanges:
    """The exchanges in a folder, one file a request, named by its digest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: Digest) -> Path:
        return self.folder / f"{name}.json"

    def find(self, name: Digest) -> Exchange | None:
        """The exchange of this request, or None; raises `StoreProblem` where the file is not what it was."""
        path = self.path(name)
        try:
            found = decode(Exchange, path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as fault:
            raise StoreProblem(f"{path.name}: no recorded reply ({fault}); restore it from a copy") from None
        if found.request.digest != name:
            raise StoreProblem(f"{path.name}: holds the reply to another request; restore it from a copy")
        return found

    def keep(self, exchange: Exchange) -> Exchange:
        """Store an exchange for good and return what is stored: where there was one already, that one."""
        name = exchange.request.digest
        write_once(self.path(name), canonical(exchange))
        return self.find(name) or exchange

    def all(self) -> Iterator[Exchange]:
        """All exchanges, in order of their digests."""
        for path in sorted(self.folder.glob("*.json")):
            if not path.name.startswith("."):
                found = self.find(path.stem)
                if found is not None:
                    yield found
