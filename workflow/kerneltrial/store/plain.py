"""Results are plain files in folders: a pipe would be waited for, a folder in a record's place read as a file."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from kerneltrial.store.problem import StoreProblem

_FILE = re.compile(r".*\.(?:json|jsonl|txt|sig|cu|py|parquet|md|sh|html|csv|svg|png)|[0-9a-f]{64}|SHA256SUMS")


def require_plain(root: Path, *folders: str, links: bool = True) -> None:
    """Raise StoreProblem for the first path that is neither a plain file nor a folder where one belongs.

    `folders` are relative to `root`; one that is not there is no problem. A link counts as what it leads to; none is
    taken where `links` is false.
    """
    for name in folders:
        path = Path()
        for part in Path(name).parts:
            path /= part
            if os.path.lexists(root / path) and not (root / path).is_dir():
                raise StoreProblem(f"{path}: is {kind(root / path)} where a folder belongs; move it away")
        for wrong in _wrong(root / name, links):
            raise StoreProblem(f"{wrong.relative_to(root)}: is {kind(wrong)} where a file belongs; move it away")


def _wrong(folder: Path, links: bool) -> Iterator[Path]:
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = Path(entry.path)
        if entry.is_symlink() and not links:
            yield path
        elif entry.is_dir(follow_symlinks=False):
            if _FILE.fullmatch(entry.name):
                yield path
            else:
                yield from _wrong(path, links)
        elif not (path.is_file() or path.is_dir()):  # not the entry's own: that raises where a link leads to itself
            yield path


def kind(path: Path) -> str:
    """What lies there, in words with their article."""
    if path.is_symlink():
        return "a link" if path.exists() else "a link to nothing"
    mode = path.lstat().st_mode
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISREG, "a file"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((name for test, name in kinds if test(mode)), "a device")
