"""`kerneltrial import torch FILE ...`: problems in PyTorch (Model, get_inputs, get_init_inputs) as trials.

Each becomes a folder with contract, cases, a float64 oracle in NumPy, a holdout and a plain baseline, or a line that
says why not. `kerneltrial import report FOLDER` says what came of them, by level.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kerneltrial.commands.importing.conversing import nursery, require_torch
from kerneltrial.commands.importing.problem import Imported, NotImported, imported, name_of
from kerneltrial.commands.importing.report import NAME, table
from kerneltrial.inputs.problem import InputProblem


def run(given: argparse.Namespace, here: Path) -> int:
    """Import, or report; 0 where something was imported or told."""
    if given.form == "report":
        for folder in given.paths:
            print(table(here / folder))
        return 0
    require_torch()
    paths = list(_files([here / path for path in given.paths]))
    out = here / given.out
    _check_free(paths, out)
    found: list[Imported | NotImported] = []
    with nursery() as opened:
        for path in paths:
            one = imported(opened, path, out)
            found.append(one)
            print(f"{path.name}: {_line(one)}", flush=True)
    _record(out, found)
    done = sum(isinstance(one, Imported) for one in found)
    print(f"{done} of {len(found)} imported into {given.out}; next: put candidates in, and `snakemake --cores 1` there")
    return 0 if done else 3


def _line(one: Imported | NotImported) -> str:
    if isinstance(one, NotImported):
        return f"cannot be imported: {one.why}"
    mode = ", in evaluation mode" if one.evaluated else ""
    return f"{one.name}{mode}; {one.launches} launches in the plain baseline; values {one.values}"


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*.py") if not p.name.startswith("_"))
        elif path.is_file():
            yield path
        else:
            raise InputProblem(f"{path}: there is no such file; name problems, or folders of them")


def _check_free(paths: Sequence[Path], out: Path) -> None:
    names: dict[str, Path] = {}
    for path in paths:
        name = name_of(path)
        if name in names:
            raise InputProblem(f"{path} and {names[name]} would both be {name}; rename one")
        names[name] = path
        if (out / name).exists():
            raise InputProblem(f"{out / name}: is there already; remove it, or name another folder with --out")
    if not paths:
        raise InputProblem("import: no problem was found; name .py files, or folders of them")


def _record(out: Path, found: Sequence[Imported | NotImported]) -> None:
    """Add to the folder's own list of what was imported."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / NAME
    before = msgspec.json.decode(path.read_bytes(), type=list[Imported | NotImported]) if path.is_file() else []
    kept = {one.name: one for one in (*before, *found)}
    path.write_bytes(msgspec.json.format(msgspec.json.encode([kept[name] for name in sorted(kept)]), indent=1) + b"\n")
