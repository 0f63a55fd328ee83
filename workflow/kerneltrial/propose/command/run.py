"""One run of an external program that proposes: what it was given, what it tried, what it left. Written once."""

from pathlib import Path

from kerneltrial.propose.proposer import TriedDraft
from kerneltrial.records.asking import Command
from kerneltrial.records.proposal import Unusable
from kerneltrial.records.record import Count, Digest, Record
from kerneltrial.store.canonical import canonical, decode, digest
from kerneltrial.store.files import write_once
from kerneltrial.store.problem import StoreProblem


class Given(Record):
    """What decides a run: the program with its files and bounds, prompt and schema, and which sample it is."""

    command: Command
    program: dict[str, Digest]
    prompt: Digest
    schema: Digest
    sample: Count

    @property
    def digest(self) -> Digest:
        return digest(canonical(self))


class Run(Record):
    """A finished run. `tries` in order, each a judged draft or why it was none; `left` is proposal.json as text.

    `problem` says why there is no proposal; it is empty where there is one.
    """

    given: Given
    tries: tuple[TriedDraft | Unusable, ...]
    left: str
    problem: str


class Runs:
    """The runs in a folder, one file each, named by the digest of what they were given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, given: Given) -> Run | None:
        """The run that was given this, or None; raises `StoreProblem` where its file is not what it was."""
        path = self.folder / f"{given.digest}.json"
        if not path.is_file():
            return None
        try:
            found = decode(Run, path.read_bytes())
        except ValueError as fault:
            raise StoreProblem(f"{path.name}: no recorded run ({fault}); restore it from a copy") from None
        if found.given != given:
            raise StoreProblem(f"{path.name}: holds another run; restore it from a copy")
        return found

    def keep(self, run: Run) -> Run:
        """Store a run for good."""
        write_once(self.folder / f"{run.given.digest}.json", canonical(run))
        return run
