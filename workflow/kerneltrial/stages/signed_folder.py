"""Files that only this trial's own stages can have made, under `results/TRIAL/cache`: no evidence, and safe to delete.

Each file carries a code that only who holds the trial's key can make, and the key lies in `private/`, which never
travels: what came with a copy of somebody else's folder is not taken.
"""

import contextlib
import hmac
import secrets
from pathlib import Path

from kerneltrial.store.files import write_atomic, write_once
from kerneltrial.store.problem import StoreProblem

_KEY = "code-key"
_KEY_BYTES = 32
_CODE_BYTES = 32


def code_key(private: Path) -> bytes:
    """The trial's key in its folder of secrets, made at first use. Raises StoreProblem where it cannot be written."""
    path = private / _KEY
    if not path.exists():
        write_once(path, secrets.token_bytes(_KEY_BYTES), mode=0o600)
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise StoreProblem(f"{path}: is no key; remove it and the trial's cache/, both are made again")
    return key


class SignedFolder:
    """One file a name, in front of it an HMAC-SHA256 of its name and bytes."""

    def __init__(self, folder: Path, key: bytes) -> None:
        self._folder = folder
        self._key = key

    def read(self, name: str) -> bytes | None:
        """What was written under this name, or None where nothing was, or where it was damaged or forged."""
        try:
            content = (self._folder / name).read_bytes()
        except OSError:
            return None
        stated, body = content[:_CODE_BYTES], content[_CODE_BYTES:]
        return body if hmac.compare_digest(stated, self._code(name, body)) else None

    def write(self, name: str, body: bytes) -> None:
        """Keep it; never fails, as it can be made again."""
        with contextlib.suppress(StoreProblem):  # a full disk will be told by what must be written
            write_atomic(self._folder / name, self._code(name, body) + body)

    def _code(self, name: str, body: bytes) -> bytes:
        """Over the name too: another file of the same trial is not this one."""
        return hmac.digest(self._key, name.encode() + b"\n" + body, "sha256")
