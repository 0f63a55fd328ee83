"""`kerneltrial export loader|torch`: the trial's winner as a small Python package that launches it, with a way back.

The package needs `cuda.core` (as a custom operation of PyTorch also `torch`) and nothing of kerneltrial. It keeps the
winner to what was tried: where the dimensions lie outside of the contract, where no variant of its plan holds, or where
its binary does not load on the device, it launches the baseline. It is a means for the integration test that a GO
authorises, whatever the decision was.
"""

import argparse
import keyword
import os
from pathlib import Path

from kerneltrial.commands.configuration import read_config
from kerneltrial.commands.exported_package import SUMS, write_package
from kerneltrial.commands.loader_text import Part, function_name
from kerneltrial.commands.trial_records import record
from kerneltrial.dag import graph
from kerneltrial.evidence.links import wrong_ids
from kerneltrial.evidence.members import is_exported
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.build import Build, Built, Cubin
from kerneltrial.records.candidate import Candidate
from kerneltrial.records.decision import Decision, Winner
from kerneltrial.records.lock import Lock
from kerneltrial.records.proposal import Proposal
from kerneltrial.records.qualification import Qualification
from kerneltrial.store import envelopes
from kerneltrial.store.files import whole_folder
from kerneltrial.store.objects import Objects
from kerneltrial.store.signed import is_sealed

ENDINGS = {"loader": "_loader", "torch": "_torch_loader"}  # `evidence.members` knows exported folders by the last word


def run(given: argparse.Namespace, here: Path) -> int:
    """Write the package; print where it lies and what it holds."""
    config, root = read_config(given, here)
    trial = config.trial
    lock, decided = record(root, trial, "lock", Lock), record(root, trial, "decide", Decision)
    winner = decided.winner
    if not isinstance(winner, Winner):
        raise InputProblem(f"{graph.results(trial)}: there is no winner to export: {winner.why}")
    _check_chain(root, trial, winner)
    candidate, built = _winner(root, trial, winner)
    qualification = record(root, trial, "qualify", Qualification)
    folder = (
        (here / given.out) if given.out else root / graph.reports(trial) / f"{lock.contract.name}{ENDINGS[given.form]}"
    )
    if os.path.lexists(folder):
        raise InputProblem(f"{folder}: is there already; remove it, or name another with --out")
    if not folder.name.isidentifier() or keyword.iskeyword(folder.name):
        raise InputProblem(f"{folder}: {folder.name!r} is no name that Python can import; name another with --out")
    _refuse_sealed(folder, root, trial)
    parts = (
        Part("winner", candidate.plan, built.abi, _arch(built)),
        Part("baseline", qualification.baseline_plan, qualification.baseline.abi, _arch(qualification.baseline)),
    )
    story = (
        f"The winner of the kerneltrial trial {trial}, which ended {decided.outcome} ({lock.device.kind}, "
        f"{lock.device.arch}{', no card' if lock.device.kind == 'cpu' else ''}); candidate\n{candidate.id}."
    )
    objects = Objects(root / graph.results(trial) / "objects")
    binaries = {**_binaries("winner", built, objects), **_binaries("baseline", qualification.baseline, objects)}
    with whole_folder(folder) as made:
        sums = write_package(made, given.form, (lock.contract, story), (parts, binaries))
    files = ", ".join(sorted(path.name for path in folder.iterdir()))
    how = "torch.ops.kerneltrial." if given.form == "torch" else f"{folder.name}."
    words = "..." if given.form == "torch" else "stream, ..."
    print(f"{_shown(folder, here)}: {' '.join(story.split())}")
    print(f"import {folder.name}, then {how}{function_name(lock.contract)}({words}); files: {files}")
    print(f"SHA-256 of {SUMS}, which names those of the other files: {sums}")
    if lock.device.kind == "cpu":
        print(_of_no_card(lock.device.arch))
    return 0


def _shown(folder: Path, here: Path) -> Path:
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _of_no_card(arch: str) -> str:
    """What to know of a package from a trial that no card was in."""
    return (
        f"note: no card was in this trial. The machine code is for {arch}, which nobody asked for unless `arch` in the "
        "config did, and loads on such a card alone; on others the driver translates the PTX. Neither was run on a "
        "card: try the trial on yours first"
    )


def _refuse_sealed(folder: Path, root: Path, trial: str) -> None:
    """What would count as evidence that came after the seal breaks it."""
    if not is_sealed(root / graph.results(trial)):
        return
    place, results, reports = (
        path.resolve() for path in (folder, root / graph.results(trial), root / graph.reports(trial))
    )
    beside = place.is_relative_to(reports) and not is_exported(place.relative_to(reports))
    if beside or place.is_relative_to(results):
        raise InputProblem(f"{folder}: lies in trial {trial}, which is sealed; name a folder elsewhere with --out")


def _check_chain(root: Path, trial: str, winner: Winner) -> None:
    """Raise `InputProblem` unless the decision was made from the very records that the package will be made from."""
    decided = envelopes.read(root / graph.record_path(trial, "decide"))
    inputs = decided.made_from.inputs if decided else {}
    pairs = (("lock", 0), ("qualify", 0), ("propose", winner.iteration), ("build", winner.iteration))
    for path in (graph.record_path(trial, stage, number) for stage, number in pairs):
        found = envelopes.read(root / path)
        if found is None or inputs.get(path) != envelopes.body_digest(found):
            raise InputProblem(f"{path}: is not the record that the decision was made from; run snakemake again")
        if wrong_ids(found.body):
            raise InputProblem(f"{path}: a candidate's id is not that of its source and plan; it was edited")


def _winner(root: Path, trial: str, winner: Winner) -> tuple[Candidate, Built]:
    """The winner's candidate and build, from the records of its iteration."""
    paths = {stage: graph.record_path(trial, stage, winner.iteration) for stage in ("propose", "build")}
    proposal = envelopes.body(Proposal, (root / paths["propose"]).read_bytes(), paths["propose"])
    build = envelopes.body(Build, (root / paths["build"]).read_bytes(), paths["build"])
    candidate = next((c for c in proposal.candidates if c.id == winner.candidate), None)
    built = next((b for b in build.candidates if b.candidate == winner.candidate and isinstance(b, Built)), None)
    if candidate is None or not isinstance(built, Built):
        raise InputProblem(f"{paths['build']}: does not hold the winner {winner.candidate}; run snakemake again")
    return candidate, built


def _arch(built: Built) -> str:
    return built.cubin.arch if isinstance(built.cubin, Cubin) else ""


def _binaries(name: str, built: Built, objects: Objects) -> dict[str, bytes]:
    """Machine code where there is some; PTX, for other cards, where there is some."""
    found = {f"{name}.cubin": objects.get(built.cubin.digest)} if isinstance(built.cubin, Cubin) else {}
    ptx = objects.get(built.ptx)
    return {**found, f"{name}.ptx": ptx} if ptx else found
