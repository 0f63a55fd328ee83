"""The bundle as one tar file: equal evidence gives equal bytes. And reading one that a stranger made."""

import contextlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from kerneltrial.evidence.problem import EvidenceProblem

_MOST_BYTES = 4 * 2**30
_MOST_FILES = 200_000


def pack(members: Mapping[str, Path], prefix: str, to: Path) -> None:
    """Write the tar: sorted names, no times, no owners, plain files only.

    Raises
    ------
    EvidenceProblem
        It cannot be written: no such folder, a folder of that name, a full disk. Nothing is left.
    """
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
    except (tarfile.TarError, OSError, EOFError) as fault:
        raise EvidenceProblem(f"{bundle}: cannot be read as a tar file ({fault})") from fault


def _unpacked(tar: tarfile.TarFile, into: Path) -> str:
    seen, tops, total = set[str](), set[str](), 0
    for entry in tar:
        path = PurePosixPath(entry.name)
        total += entry.size
        if not entry.isreg() or path.is_absolute() or ".." in path.parts or len(path.parts) < 2:
            raise EvidenceProblem(f"{entry.name!r}: a bundle holds plain files in one folder and nothing else")
        if entry.name in seen:
            raise EvidenceProblem(f"{entry.name}: is in the bundle twice")
        if total > _MOST_BYTES or len(seen) > _MOST_FILES:
            raise EvidenceProblem(f"{entry.name}: the bundle is larger than any trial's; not unpacked further")
        seen.add(entry.name)
        tops.add(path.parts[0])
        file = tar.extractfile(entry)
        target = into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read() if file else b"")
    if len(tops) != 1:
        raise EvidenceProblem("the bundle holds more than one folder, or none")
    return tops.pop()
