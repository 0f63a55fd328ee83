"""One PyTorch problem: from its file to a trial's folder, or to the reason why not."""

import keyword
import math
from importlib.util import decode_source
from pathlib import Path
from typing import Annotated, Any

import yaml
from msgspec import Meta
from msgspec.structs import replace

from kerneltrial.commands.importing import trial_files
from kerneltrial.commands.importing.contract_of import contract_of, least_scaled, output_names, plan_of
from kerneltrial.commands.importing.conversing import MOST_NUMBERS, Asked, asking
from kerneltrial.commands.importing.cuda_text import baseline
from kerneltrial.commands.importing.graph import Graph
from kerneltrial.commands.importing.lowering import lowered
from kerneltrial.commands.importing.messages import Traced
from kerneltrial.commands.importing.oracle_text import oracle_text
from kerneltrial.commands.importing.sharp import SCALED, Bounds, ladder, tried
from kerneltrial.inputs.oracle import load
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.record import Digest, Record
from kerneltrial.sandbox.nursery import Nursery
from kerneltrial.store.canonical import digest
from kerneltrial.store.files import whole_folder
from kerneltrial.store.printed import printed

_MOST_BYTES = 1 << 20  # of a problem's file; people's have a few kilobytes
_MOST_LETTERS = 500  # of what is told of a problem
# What reading a graph raises that no torch has traced: its process can send what it likes.
_MADE_UP = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


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
    """A trial's name from a file's: letters, digits and underscores, and text to YAML and Python, as no `on` is."""
    kept = "".join(c if c.isascii() and c.isalnum() else "_" for c in path.stem.lower()).strip("_")[:58]
    plain = kept[:1].isalpha() and yaml.safe_load(kept) == kept and not keyword.iskeyword(kept)
    return kept if plain else f"p_{kept}"


def level_of(path: Path) -> str:
    """The folder that a problem lies in, such as level1."""
    return printed(path.resolve().parent.name)


def imported(nursery: Nursery, path: Path, out: Path) -> Imported | NotImported:
    """Import one problem into the folder `out`/NAME, which is there as a whole, and only where that works."""
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    name, level, sha256 = name_of(path), level_of(path), digest(content)
    try:
        source = _source(content)
        with whole_folder(out / name) as folder:
            made = _made(nursery, source, folder, (name, sha256))
            (folder / "problem.py").write_bytes(content)
    except InputProblem as problem:
        return NotImported(name=name, level=level, problem=sha256, why=_line(str(problem)))
    return Imported(name=name, level=level, problem=sha256, **made)


def _source(content: bytes) -> str:
    """A file as Python reads it: by its byte order mark, or the encoding that its first lines name, or as UTF-8."""
    if len(content) > _MOST_BYTES:
        raise InputProblem(f"it has more than {_MOST_BYTES} bytes; is it a problem?")
    try:
        return decode_source(content)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        raise InputProblem("it is no text in UTF-8, or in the encoding that its first lines name") from None


def _line(told: str) -> str:
    return printed(" ".join(told.split()))[:_MOST_LETTERS]


def _made(nursery: Nursery, source: str, folder: Path, about: tuple[str, Digest]) -> dict[str, Any]:
    """Everything of the trial but problem.py, in `folder`; raises `InputProblem` where it cannot be made.

    `about`: the trial's name, and the digest of the problem's file.
    """
    try:
        with asking(nursery, source) as asked:
            first = asked.traced()
        with asking(nursery, source) as asked:
            traced = asked.traced()
            _check_same(first, traced)
            return _written(asked, traced, folder, about)
    except _MADE_UP as fault:
        raise InputProblem(f"its graph is none that torch gives ({type(fault).__name__})") from None
    except InputProblem as problem:
        raise InputProblem(str(problem).replace(f"{folder}/", "")) from None


def _check_same(first: Traced, again: Traced) -> None:
    """Raise `InputProblem` where two processes gave two graphs: a function of its inputs is the same one again."""
    if replace(first, given=()) != replace(again, given=()) or _forms(first) != _forms(again):
        raise InputProblem("it is another function each time it is loaded: it rests on chance, time or its process")


def _forms(traced: Traced) -> list[tuple[Any, ...]]:
    return [(one.name, one.role, one.dtype, one.shape) for one in traced.given]


def _written(asked: Asked, traced: Traced, folder: Path, about: tuple[str, Digest]) -> dict[str, Any]:
    name, sha256 = about
    graph = lowered(traced)
    outputs = output_names(graph)
    _check_answers(graph)
    contract_of(name, "", graph, {one.name: (None, None) for one in graph.given}, SCALED)  # before anything is run
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


def _check_answers(graph: Graph) -> None:
    """Raise `InputProblem` where the outputs would not fit an answer of the problem's process."""
    many = sum(math.prod(graph.shapes[name]) for name in graph.outputs)
    if many > MOST_NUMBERS:
        raise InputProblem(
            f"its outputs hold {many} numbers; at most {MOST_NUMBERS} are taken: make its shapes smaller"
        )


def _bounds(asked: Asked, graph: Graph, name: str, path: Path) -> tuple[str, Bounds, int]:
    """The widest bounds that do, and the tolerance for them; `InputProblem` says what is wrong with the narrowest."""
    oracle = load(path)
    why, least = "", least_scaled(graph)
    for word, bounds in ladder(graph.given):
        found = tried(asked, contract_of(name, "", graph, bounds, SCALED), oracle, graph.given, least)
        if isinstance(found, int):
            return word, bounds, found
        why = found
    raise InputProblem(f"no bounds of its inputs will do, not even the values as seen: {why}")
