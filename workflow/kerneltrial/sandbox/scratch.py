"""A folder for a child that is not trusted, and its removal whatever the child made of it.

`shutil.rmtree` goes down by recursion, so folders within folders to a depth of a thousand end it with an exception that
is no OSError, and a folder without permissions stays where it is.
"""

import contextlib
import itertools
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def scratch_folder(prefix: str = "kerneltrial-") -> Iterator[Path]:
    """A fresh folder, which is gone afterwards with all that is in it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
    try:
        yield folder
    finally:
        remove(folder)


def remove(folder: Path) -> None:
    """Remove a folder in which nobody is at work any more; what the system keeps us from removing stays.

    Folders are moved up to `folder` before they are emptied, so that no path grows long and nothing is recursive. No
    link is followed.
    """
    unseen = secrets.token_hex(16)  # what a child cannot have used itself: a folder is not moved onto a full one
    names = (f".{unseen}-{number}" for number in itertools.count())
    if folder.is_symlink():
        return
    with contextlib.suppress(OSError):
        os.chmod(folder, stat.S_IRWXU)
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            waiting = _emptied(top, top, names)
            while waiting:
                name = waiting.pop()
                waiting += _folder_emptied(name, top, names)
        finally:
            os.close(top)
        os.rmdir(folder)


def _folder_emptied(name: str, top: int, names: Iterator[str]) -> list[str]:
    """Empty and remove a folder in `top`; names of the folders that it held, which lie in `top` now."""
    with contextlib.suppress(OSError):
        os.chmod(name, stat.S_IRWXU, dir_fd=top)
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
        try:
            found = _emptied(inner, top, names)
        finally:
            os.close(inner)
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=top)
        return found
    return []


def _emptied(inner: int, top: int, names: Iterator[str]) -> list[str]:
    found = []
    with os.scandir(inner) as entries:
        held = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in held:
        with contextlib.suppress(OSError):
            if not is_folder:
                os.unlink(name, dir_fd=inner)
                continue
            os.chmod(name, stat.S_IRWXU, dir_fd=inner)  # what may not be written to may not be moved
            other = f".{os.getpid()}-{next(names)}"
            os.rename(name, other, src_dir_fd=inner, dst_dir_fd=top)
            found.append(other)
    return found
