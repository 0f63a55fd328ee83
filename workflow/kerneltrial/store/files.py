"""Files that are whole or absent: temporary file, fsync, rename."""

import contextlib
import errno
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

from kerneltrial.store.plain import kind
from kerneltrial.store.problem import StoreProblem


def write_atomic(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write `data` so that a reader sees the old bytes or the new ones, also after a kill or a full disk.

    Raises
    ------
    StoreProblem
        The file system refuses, or a device or a pipe lies there; nothing is left half written.
    """
    require_replaceable(path)
    temporary = write_temporary(path, data, mode)
    try:
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StoreProblem(_explain(path, error)) from error


def require_replaceable(path: Path) -> None:
    """Raise StoreProblem for what a rename would do away with and nobody meant to: whoever may, loses /dev/full."""
    try:
        found = path.lstat().st_mode
    except OSError:
        return  # none is there; what else is wrong shows when it is written
    if not (stat.S_ISREG(found) or stat.S_ISLNK(found) or stat.S_ISDIR(found)):
        raise StoreProblem(f"{path}: is {kind(path)} where a file belongs; name another file, or move it away")


def write_temporary(path: Path, data: bytes, mode: int = 0o644) -> Path:
    """Write and fsync a temporary file beside `path`; the caller renames or links it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StoreProblem(_explain(path, error)) from error
    return temporary


def write_once(path: Path, data: bytes, mode: int = 0o444) -> bool:
    """Link a new file into place; whoever links first wins. True when it was this call."""
    temporary = write_temporary(path, data, mode)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        raise StoreProblem(_explain(path, error)) from error
    finally:
        temporary.unlink(missing_ok=True)
    return True


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to be filled, which has its name when all of it is there; nothing is left where it cannot be."""
    made = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        made.mkdir(parents=True)
        yield made
        made.rename(folder)
    except OSError as error:
        raise StoreProblem(_explain(folder, error)) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove temporary files that killed writers left. Only under the trial's lock, where no writer is at work."""
    for path in folder.rglob(".*.tmp"):
        path.unlink(missing_ok=True)


# What a file system refuses for reasons that lie outside of this program, so that no trace of it would help anyone.
_OUTSIDE = frozenset((
    errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENFILE,
    errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ETXTBSY, errno.EFBIG,
))  # fmt: skip


def refused(error: OSError) -> StoreProblem | None:
    """The one line for what a file system refused somewhere; None where the fault may as well be ours."""
    names = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreProblem(_explain(Path(names[-1] if names else "a file"), error))
    if not names or error.errno not in _OUTSIDE:
        return None
    where = " -> ".join(names)
    return StoreProblem(
        f"{where}: cannot be read or written ({error.strerror}); check what lies there and who may use it"
    )


def _explain(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{path}: the disk is full; free some space and run the same command again"
    if error.errno == errno.EFBIG:
        return f"{path}: is larger than this process may write; raise the limit (`ulimit -f`) and run the command again"
    return f"{path}: cannot be written ({error.strerror}); check the folder's permissions"
