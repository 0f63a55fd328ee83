"""Which files a trial is made of, by group, so that staleness and lock look at the same ones."""

from pathlib import Path, PurePosixPath
from typing import Protocol

from kerneltrial.inputs.documents import read_document
from kerneltrial.inputs.file_keys import FILE_KEYS
from kerneltrial.inputs.plans import plan_path
from kerneltrial.inputs.problem import InputProblem

FOLDERS = {"candidates": "files", "replies": "replay", "program": "command"}  # and the proposers that use them


class NamesFiles(Protocol):
    """The part of a config that this module needs."""

    @property
    def proposer(self) -> str: ...


def sources(config: NamesFiles, folder: Path = Path()) -> dict[str, tuple[str, ...]]:
    """Return the files of each group, relative to `folder` (where the config lies); the group's own file is first.

    contract
        the contract, and all files of its include folders
    baseline, reference
        source and launch plan
    cases
        the cases, and the `.npy` files that they name
    space
        the search space and the source that it names; empty unless the proposer is `search`
    candidates, replies, program
        all files of the folder; empty unless the proposer is `files`, `replay` or `command`; with replies come the
        files that say which iterations were asked for again
    reviewers
        the file of reviewers' keys; empty where none is named
    application
        all files of the folder that end-to-end evidence runs in; empty where none is named

    Raises
    ------
    InputProblem
        Where a file that names others cannot be read.
    """
    named = {key: str(getattr(config, key)) for key in FILE_KEYS}
    return {
        "contract": (named["contract"], *_included(named["contract"], folder)),
        "baseline": _with_plan(named["baseline"]),
        "cases": (named["cases"], *_stored(named["cases"], folder)),
        "oracle": (named["oracle"],),
        "reference": _with_plan(named["reference"]) if named["reference"] else (),
        "holdout": (named["holdout"],),
        "space": _space(named["space"], folder) if config.proposer == "search" else (),
        **{
            key: _files(named[key], folder) if named[key] and config.proposer == proposer else ()
            for key, proposer in FOLDERS.items()
        },
        "replies": _replies(named["replies"], folder) if config.proposer == "replay" else (),
        "reviewers": (named["reviewers"],) if named["reviewers"] else (),
        "application": _files(named["application"], folder) if named["application"] else (),
    }


def _with_plan(source: str) -> tuple[str, ...]:
    return (source, plan_path(PurePosixPath(source)).as_posix())


def _beside(path: str, other: str) -> str:
    """The path of a file that `path` names relative to itself; one outside of the trial's folder is refused.

    Such a file would be no part of a bundle, and another one elsewhere.
    """
    found = PurePosixPath(path).parent / other
    if leads_out(found):
        raise InputProblem(f"{path}: {other!r} leads out of the trial's folder; copy it there and name the copy")
    return found.as_posix()


def leads_out(path: PurePosixPath) -> bool:
    """Whether a path relative to the trial's folder is of something outside of it."""
    depth = 0
    for part in path.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return path.is_absolute()


def _files(folder_name: str, folder: Path) -> tuple[str, ...]:
    whole = folder / folder_name
    found = (path for path in whole.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    names = sorted((PurePosixPath(folder_name) / path.relative_to(whole).as_posix()).as_posix() for path in found)
    for name in names:
        if any(letter in "\\\n\r" or "\ud800" <= letter <= "\udfff" for letter in name):
            told = ascii(name.removeprefix(f"{folder_name}/"))
            raise InputProblem(
                f"{folder_name}: a file there is called {told}, which neither records nor SHA256SUMS can hold: a "
                "backslash, a line break, or bytes that are no UTF-8; rename it"
            )
    return tuple(names)


def _replies(replies: str, folder: Path) -> tuple[str, ...]:
    again = _beside(replies, "again")
    return (*_files(replies, folder), *(_files(again, folder) if (folder / again).is_dir() else ()))


def _may_hold(file: Path, key: bytes) -> bool:
    """Whether a YAML file could hold a key: its bytes do, or an escape that may stand for some.

    Every job of a trial asks, and most files name no others; to read them as YAML would take ten times as long.
    """
    try:
        content = file.read_bytes()
    except OSError:
        return True  # whoever reads it as YAML says what is wrong
    return key in content or b"\\" in content


def _included(contract: str, folder: Path) -> tuple[str, ...]:
    if not _may_hold(folder / contract, b"include_folders"):
        return ()
    document = read_document(folder / contract)
    folders = document.get("include_folders", []) if isinstance(document, dict) else []
    if not isinstance(folders, list):
        return ()  # the contract's own reader says what is wrong
    found: list[str] = []
    for name in folders:
        place = _beside(contract, str(name))
        if not (folder / place).is_dir():
            raise InputProblem(f"{contract}: include_folders: there is no folder {place}")
        found += _files(place, folder)
    return tuple(found)


def _stored(cases: str, folder: Path) -> tuple[str, ...]:
    """Files that cases name, without a look at anything else in them: the cases' own reader checks the rest."""
    if not _may_hold(folder / cases, b"path"):
        return ()
    found: list[str] = []
    document = read_document(folder / cases)
    listed = document.get("cases") if isinstance(document, dict) else None
    for case in listed if isinstance(listed, list) else ():
        inputs = case.get("inputs") if isinstance(case, dict) else None
        for source in inputs.values() if isinstance(inputs, dict) else ():
            if isinstance(source, dict) and isinstance(source.get("path"), str):
                found.append(_beside(cases, source["path"]))
    return tuple(dict.fromkeys(found))


def _space(space: str, folder: Path) -> tuple[str, ...]:
    document = read_document(folder / space)
    named = document.get("source") if isinstance(document, dict) else None
    if not isinstance(named, str):
        raise InputProblem(f"{space}: the key 'source' is missing; it names the .cu file of the space")
    source = _beside(space, named)
    if not (folder / source).is_file():
        raise InputProblem(f"{space}: source: there is no file {source}")
    return (space, source)
