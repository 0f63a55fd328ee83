"""Machine code of binaries between stages, under `results/TRIAL/cache`: no evidence, and safe to delete."""

import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kerneltrial.devices.device import Binary
from kerneltrial.devices.machine_code import MOST_BYTES
from kerneltrial.store.files import write_atomic
from kerneltrial.store.problem import StoreProblem

_DIGEST_BYTES = 32


class CodeFolder:
    """Implements `devices.runner.CodeShelf`: one file a binary, its own SHA-256 in front."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def known(self, binary: Binary) -> dict[str, bytes]:
        """See `CodeShelf`."""
        try:
            content = self._path(binary).read_bytes()
        except OSError:
            return {}
        if hashlib.sha256(content[_DIGEST_BYTES:]).digest() != content[:_DIGEST_BYTES]:
            return {}
        try:
            return msgspec.msgpack.decode(content[_DIGEST_BYTES:], type=dict[str, bytes])
        except msgspec.MsgspecError:
            return {}

    def add(self, binary: Binary, made: Mapping[str, bytes]) -> None:
        """See `CodeShelf`."""
        pieces = {**self.known(binary), **made}
        if sum(map(len, pieces.values())) > MOST_BYTES:
            return
        body = msgspec.msgpack.encode(pieces, order="sorted")
        with contextlib.suppress(StoreProblem):  # a full disk will be told by what must be written
            write_atomic(self._path(binary), hashlib.sha256(body).digest() + body)

    def _path(self, binary: Binary) -> Path:
        return self._folder / f"{hashlib.sha256(binary.ptx.encode()).hexdigest()}.code"
