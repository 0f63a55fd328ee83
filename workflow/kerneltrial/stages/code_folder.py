"""Machine code of binaries between stages, under `results/TRIAL/cache`: no evidence, and safe to delete.

Code is run without a look at what it does, so it is taken only where this trial's own stages put it here: each file
carries a code that only who holds the trial's key can make, and the key lies in `private/`, which never travels.
"""

import contextlib
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kerneltrial.devices.device import Binary
from kerneltrial.devices.machine_code import MOST_BYTES
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


class CodeFolder:
    """Implements `devices.runner.CodeShelf`: one file a binary, in front of it an HMAC-SHA256 of its name and bytes."""

    def __init__(self, folder: Path, key: bytes) -> None:
        self._folder = folder
        self._key = key

    def known(self, binary: Binary) -> dict[str, bytes]:
        """See `CodeShelf`."""
        try:
            content = self._path(binary).read_bytes()
        except OSError:
            return {}
        stated, body = content[:_CODE_BYTES], content[_CODE_BYTES:]
        if not hmac.compare_digest(stated, self._code(binary, body)):
            return {}
        try:
            return msgspec.msgpack.decode(body, type=dict[str, bytes])
        except msgspec.MsgspecError:
            return {}

    def add(self, binary: Binary, made: Mapping[str, bytes]) -> None:
        """See `CodeShelf`."""
        pieces = {**self.known(binary), **made}
        if sum(map(len, pieces.values())) > MOST_BYTES:
            return
        body = msgspec.msgpack.encode(pieces, order="sorted")
        with contextlib.suppress(StoreProblem):  # a full disk will be told by what must be written
            write_atomic(self._path(binary), self._code(binary, body) + body)

    def _code(self, binary: Binary, body: bytes) -> bytes:
        """Over the name too: a file of another binary of the same trial is not this one's."""
        return hmac.digest(self._key, self._path(binary).name.encode() + b"\n" + body, "sha256")

    def _path(self, binary: Binary) -> Path:
        return self._folder / f"{hashlib.sha256(binary.ptx.encode()).hexdigest()}.code"
