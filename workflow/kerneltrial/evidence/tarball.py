"""The bundle as one tar file: equal evidence gives equal bytes. And reading one that a stranger made."""

import contextlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from kerneltrial.evidence.problem import EvidenceProblem
from kerneltrial.store.files import require_replaceable

_MOST_BYTES = 4 * 2**30
_MOST_FILES = 200_000
# What `tarfile` raises on headers that nobody writes in good faith, beside its own errors: names with NUL, negative
# sizes, maps of holes in a plain file.
_UNREADABLE = (tarfile.TarError, OSError, EOFError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError)


def pack(members: Mapping[str, Path], prefix: str, to: Path) -> None:
    """Write the tar: sorted names, no times, no owners, plain files only.

    Raises
    ------
    EvidenceProblem
        It cannot be written: no such folder, a folder of that name, a full disk. Nothing is left.
    """
    require_replaceable(to)
    temporary = to.with_name(f".{to.name}.tmp")
    try:
        with tarfile.open(temporary, "w", format=tarfile.USTAR_FORMAT) as tar:
            for name, path in sorted(members.items()):
                entry = tarfile.TarInfo(f"{prefix}/{name}")
                data = path.read_bytes()
                entry.size, entry.mode, entry.mtime = len(data), 0o755 if name.endswith(".sh") else 0o644, 0
                tar.addfile(entry, io.BytesIO(data))
        temporary.replace(to)
    except (OSError, tarfile.TarError) as fault:
        why = (fault.strerror if isinstance(fault, OSError) else "") or str(fault)
        raise EvidenceProblem(f"{to}: the bundle cannot be written ({why}); name another file with --out") from fault
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def unpack(bundle: Path, into: Path) -> Path:
    """Unpack a bundle that is not trusted and return its one folder.

    Raises
    ------
    EvidenceProblem
        It is no tar, holds anything but plain files under one folder, names a file twice, or is far too large.
    """
    try:
        with tarfile.open(bundle, "r:") as tar:
            return into / _unpacked(tar, into)
    except _UNREADABLE as fault:
        raise EvidenceProblem(f"{bundle}: cannot be read as a tar file ({type(fault).__name__}: {fault})") from fault


def _unpacked(tar: tarfile.TarFile, into: Path) -> str:
    seen, tops, folders, total = set[str](), set[str](), set[PurePosixPath](), 0
    for entry in tar:
        path = PurePosixPath(entry.name)
        total += entry.size
        if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or entry.size < 0 or entry.sparse is not None:
            raise EvidenceProblem(f"{entry.name!r}: a bundle holds plain files in one folder and nothing else")
        if "\0" in entry.name or path.is_absolute() or ".." in path.parts or len(path.parts) < 2:
            raise EvidenceProblem(f"{entry.name!r}: a bundle holds plain files in one folder and nothing else")
        if path.as_posix() in seen:
            raise EvidenceProblem(f"{entry.name!r}: is in the bundle twice")
        if total > _MOST_BYTES or len(seen) > _MOST_FILES:
            raise EvidenceProblem(f"{entry.name!r}: the bundle is larger than any trial's; not unpacked further")
        seen.add(path.as_posix())
        tops.add(path.parts[0])
        file = tar.extractfile(entry)
        target = into / path
        if path.parent not in folders:
            target.parent.mkdir(parents=True, exist_ok=True)
            folders.add(path.parent)
        target.write_bytes(file.read() if file else b"")
    if len(tops) != 1:
        raise EvidenceProblem("the bundle holds more than one folder, or none")
    return tops.pop()
