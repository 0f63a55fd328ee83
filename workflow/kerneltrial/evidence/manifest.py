"""SHA256SUMS: the digest of every file of the evidence, in the form that `sha256sum -c` reads."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from kerneltrial.evidence.problem import EvidenceProblem

_LINE = re.compile(r"^([0-9a-f]{64})  ([^\\\n\r]+)$")


def manifest(digests: Mapping[str, str]) -> bytes:
    """The lines, sorted by path. A name with a line break or a backslash has another form there, and is refused."""
    for path in digests:
        if not _LINE.match(f"{'0' * 64}  {path}"):
            raise EvidenceProblem(f"{path!r}: has a name that SHA256SUMS cannot hold; rename the file")
    return b"".join(f"{name}  {path}\n".encode() for path, name in sorted(digests.items()))


def parse(data: bytes) -> dict[str, str]:
    """Digests by path; raises EvidenceProblem where a line is none, or a path stands there twice."""
    found: dict[str, str] = {}
    for number, line in enumerate(data.decode(errors="replace").splitlines(), start=1):
        match = _LINE.match(line)
        if match is None or match[2] in found:
            raise EvidenceProblem(f"SHA256SUMS: line {number} is no digest and path, or names a path twice")
        found[match[2]] = match[1]
    return found


def sha256(path: Path) -> str:
    """The digest of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def differences(stated: Mapping[str, str], present: Mapping[str, Path]) -> Iterator[str]:
    """What is missing, what is extra, what has other bytes."""
    for path, name in stated.items():
        if path not in present:
            yield f"{path}: is missing"
        elif sha256(present[path]) != name:
            yield f"{path}: its bytes are not those that SHA256SUMS names"
    for path in present.keys() - stated.keys():
        yield f"{path}: is extra, SHA256SUMS does not name it"
