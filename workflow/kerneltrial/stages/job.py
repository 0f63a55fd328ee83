"""A job: one stage of one iteration, with everything that it may read."""

import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kerneltrial.dag import graph
from kerneltrial.records.record import Record
from kerneltrial.records.usage import Usage
from kerneltrial.store import envelopes
from kerneltrial.store.measurements import Measurements
from kerneltrial.store.objects import Objects
from kerneltrial.store.problem import StoreProblem

if TYPE_CHECKING:
    from kerneltrial.sandbox.nursery import Nursery

T = TypeVar("T", bound=Record)


@dataclass(frozen=True)
class Job:
    """What a stage is handed.

    `given` holds the config keys of the stage's row in `dag.graph`, `sources` the files of its groups (relative to
    `root`), `inputs` the bytes of the records that it reads, by path. `nursery` is one that holds the device, on its
    way while the stage's own modules are imported, or None.
    """

    stage: str
    iteration: int
    root: Path
    trial: str
    iterations: int
    given: Mapping[str, Any]
    sources: Mapping[str, tuple[str, ...]]
    inputs: Mapping[str, bytes]
    nursery: "Nursery | None" = None

    @property
    def folder(self) -> Path:
        """The trial's results folder."""
        return self.root / graph.results(self.trial)

    @property
    def objects(self) -> Objects:
        return Objects(self.folder / "objects")

    @property
    def measurements(self) -> Measurements:
        return Measurements(self.folder / "measurements")

    def usage_store(self, stage: str, iteration: int) -> Measurements:
        """Usage entries of one stage and iteration: one for each state of its inputs that it ran on."""
        return Measurements(self.folder / "usage" / f"{stage}-{iteration:04d}")

    def used(self, stages: Iterable[str], last_iteration: int) -> list[Usage]:
        """All usage entries of these stages up to an iteration, in a fixed order."""
        pairs = [(s, i) for s in stages for i in range(last_iteration + 1) if (i > 0) == graph.STAGES[s].loop]
        return [entry for stage, i in pairs for entry in self.usage_store(stage, i).all(Usage)]

    @property
    def private(self) -> Path:
        """Mode 0700: holds the holdout's salt until the seal."""
        folder = self.folder / "private"
        folder.mkdir(parents=True, exist_ok=True)
        if stat.S_IMODE(folder.stat().st_mode) != 0o700:
            folder.chmod(0o700)
        return folder

    def record(self, stage: str, type_: type[T]) -> T:
        """The record of a stage of this iteration, or of none."""
        return self._body(graph.record_path(self.trial, stage, self.iteration), type_)

    def records(self, stage: str, type_: type[T]) -> list[T]:
        """The records of a stage over the iterations that this job reads, oldest first."""
        paths = (graph.record_path(self.trial, stage, i) for i in range(1, self.last_iteration + 1))
        return [self._body(path, type_) for path in paths if path in self.inputs]

    @property
    def last_iteration(self) -> int:
        return self.iteration or self.iterations

    def source(self, group: str) -> Path:
        """The one file of a group."""
        return self.root / self.sources[group][0]

    def _body(self, path: str, type_: type[T]) -> T:
        if path not in self.inputs:
            raise StoreProblem(f"stage {self.stage} does not read {path}")
        return envelopes.body(type_, self.inputs[path], path)
