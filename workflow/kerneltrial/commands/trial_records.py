"""Records of the trial that a command is about."""

from pathlib import Path
from typing import TypeVar

from kerneltrial.dag import graph, guard
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.record import Record
from kerneltrial.store import envelopes
from kerneltrial.store.plain import require_plain

T = TypeVar("T", bound=Record)


def record(root: Path, trial: str, stage: str, type_: type[T]) -> T:
    """The body of a stage's record; one line where there is none."""
    path = graph.record_path(trial, stage)
    if not (root / path).is_file():
        raise InputProblem(f"{path} is missing; run `kerneltrial lock` or snakemake first")
    return envelopes.body(type_, (root / path).read_bytes(), path)


def alone(root: Path, trial: str) -> Path:
    """The trial's results folder, held by this process alone until it ends."""
    require_plain(root, graph.results(trial), graph.reports(trial))
    folder = root / graph.results(trial)
    if not folder.is_dir():
        raise InputProblem(f"{graph.results(trial)}: there is no trial; run `kerneltrial lock` or snakemake first")
    if not guard.only_run(folder):
        raise InputProblem(f"{graph.results(trial)}: another run is at work here; wait for it to end")
    return folder
