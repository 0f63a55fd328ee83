"""`kerneltrial import torch FILE ...`: problems in PyTorch (Model, get_inputs, get_init_inputs) as trials.

Each becomes a folder with contract, cases, a float64 oracle in NumPy, a holdout and a plain baseline, or a line that
says why not. `kerneltrial import report FOLDER` says what came of them, by level.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kerneltrial.commands.importing.conversing import nursery, require_torch
from kerneltrial.commands.importing.problem import Imported, NotImported, imported, name_of
from kerneltrial.commands.importing.report import NAME, listed, table
from kerneltrial.decide.amounts import plural
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.store.files import write_atomic
from kerneltrial.store.printed import printed


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
    _record(out, [])  # what cannot be read or written there shows before the work
    found: list[Imported | NotImported] = []
    with nursery() as opened:
        for path in paths:
            one = imported(opened, path, out)
            _record(out, [one])
            found.append(one)
            print(printed(f"{path.resolve().parent.name}/{path.name}: {_line(one)}"), flush=True)
    done = [one.name for one in found if isinstance(one, Imported)]
    print(f"{len(done)} of {len(found)} imported into {given.out}" + (_next(given.out, done) if done else ""))
    return 0 if done else 3


def _next(out: Path, done: Sequence[str]) -> str:
    name = done[0] if len(done) == 1 else "NAME"
    return f"; next: cd {out / name}, put kernels into kernels/{name}/candidates, `snakemake --cores 1`"


def _line(one: Imported | NotImported) -> str:
    if isinstance(one, NotImported):
        return f"cannot be imported: {one.why}"
    mode = ", in evaluation mode" if one.evaluated else ""
    return f"{one.name}{mode}; {plural(one.launches, 'launch', 'launches')} in the plain baseline; values {one.values}"


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*.py") if not p.name.startswith("_"))
        elif path.is_file():
            yield path
        else:
            what = "is neither a file nor a folder" if os.path.lexists(path) else "there is no such file"
            raise InputProblem(f"{path}: {what}; name problems, or folders of them")


def _check_free(paths: Sequence[Path], out: Path) -> None:
    names: dict[str, Path] = {}
    for path in paths:
        name = name_of(path)
        if name in names:
            raise InputProblem(f"{path} and {names[name]} would both be {name}; rename one")
        names[name] = path
        if os.path.lexists(out / name):
            raise InputProblem(f"{out / name}: is there already; remove it, or name another folder with --out")
    if not paths:
        raise InputProblem("import: no problem was found; name .py files, or folders of them")


def _record(out: Path, found: Sequence[Imported | NotImported]) -> None:
    """Add to the folder's own list of what was imported."""
    if out.exists() and not out.is_dir():
        raise InputProblem(f"{out}: is no folder; name another with --out")
    path = out / NAME
    kept = {one.name: one for one in (*(listed(path) if os.path.lexists(path) else ()), *found)}
    write_atomic(
        path, msgspec.json.format(msgspec.json.encode([kept[name] for name in sorted(kept)]), indent=1) + b"\n"
    )
