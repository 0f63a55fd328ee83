"""One PyTorch problem: from its file to a trial's folder, or to the reason why not."""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from kerneltrial.commands.importing import trial_files
from kerneltrial.commands.importing.contract_of import contract_of, least_scaled, output_names, plan_of
from kerneltrial.commands.importing.conversing import Asked, asking
from kerneltrial.commands.importing.cuda_text import baseline
from kerneltrial.commands.importing.graph import Graph
from kerneltrial.commands.importing.lowering import lowered
from kerneltrial.commands.importing.oracle_text import oracle_text
from kerneltrial.commands.importing.sharp import SCALED, Bounds, ladder, tried
from kerneltrial.inputs.oracle import load
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.record import Digest, Record
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.store.canonical import digest


class Imported(Record, tag_field="state", tag="imported"):
    """What was made of a problem; `values` says how inputs are drawn, `torch` which version traced it."""

    name: str
    level: str
    problem: Digest
    values: str
    evaluated: bool
    launches: Annotated[int, Meta(ge=1)]
    torch: str


class NotImported(Record, tag_field="state", tag="not_imported"):
    """Why nothing was made."""

    name: str
    level: str
    problem: Digest
    why: str


def name_of(path: Path) -> str:
    """A trial's name from a file's: letters, digits and underscores."""
    kept = "".join(c if c.isalnum() else "_" for c in path.stem.lower()).strip("_")
    return (kept if kept[:1].isalpha() else f"p_{kept}")[:60]


def level_of(path: Path) -> str:
    """The folder that a problem lies in, such as level1."""
    return path.resolve().parent.name


def imported(nursery: Nursery, path: Path, out: Path) -> Imported | NotImported:
    """Import one problem into the folder `out`/NAME, which is made only where that works."""
    content = path.read_bytes()
    name, level, sha256 = name_of(path), level_of(path), digest(content)
    with tempfile.TemporaryDirectory(prefix="kerneltrial-import-") as held:
        folder = Path(held) / name
        try:
            source = content.decode("utf-8")
            with asking(nursery, source) as asked:
                made = _made(asked, folder, name, sha256)
        except UnicodeDecodeError:
            return NotImported(name=name, level=level, problem=sha256, why="it is not UTF-8 text")
        except InputProblem as problem:
            return NotImported(name=name, level=level, problem=sha256, why=" ".join(str(problem).split())[:500])
        shutil.copy(path, folder / "problem.py")
        shutil.copytree(folder, out / name)
    return Imported(name=name, level=level, problem=sha256, **made)


def _made(asked: Asked, folder: Path, name: str, sha256: Digest) -> dict[str, Any]:
    traced = asked.traced()
    graph = lowered(traced)
    outputs = output_names(graph)
    kernels = baseline(graph, outputs)
    plan = plan_of(kernels)
    mode = ", in evaluation mode" if traced.evaluated else ""
    story = f"The forward of problem.py (SHA-256 {sha256[:16]}){mode}, as torch {traced.torch} traces it."
    path = trial_files.oracle_path(folder, name)
    path.parent.mkdir(parents=True)
    path.write_text(oracle_text(graph, outputs, story))
    word, bounds, scaled = _bounds(asked, graph, name, path)
    contract = contract_of(name, story, graph, bounds, scaled)
    author = f"whoever wrote problem.py, {sha256[:16]}"
    trial_files.write(folder, contract, plan, kernels.source, author)
    launches = len(plan.variants[0].launches)
    return {"values": word, "evaluated": traced.evaluated, "launches": launches, "torch": traced.torch}


def _bounds(asked: Asked, graph: Graph, name: str, path: Path) -> tuple[str, Bounds, int]:
    """The widest bounds that do, and the tolerance for them; `InputProblem` says what is wrong with the narrowest."""
    oracle = load(path)
    why, least = "", least_scaled(graph)
    for word, bounds in ladder(graph.given):
        found = tried(asked, contract_of(name, "", graph, bounds, SCALED), oracle, graph.given, least)
        if isinstance(found, int):
            return word, bounds, found
        why = found
    raise InputProblem(f"no bounds of its inputs give right answers in float32, also as seen: {why}")
