"""What was made of a text once and is wanted again between stages of a trial; see `signed_folder` for whose it can be.

Machine code is run without a look at what it does, and a compiler's answer is believed as a compiler's: each is taken
only where this trial's own stages put it.
"""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from kerneltrial.build.messages import Compiled
from kerneltrial.devices.machine_code import MOST_BYTES
from kerneltrial.stages.job import Job
from kerneltrial.stages.signed_folder import SignedFolder, code_key

if TYPE_CHECKING:
    from kerneltrial.devices.device import Binary  # numpy comes with it, and `build` needs none


class CodeFolder:
    """Implements `devices.runner.CodeShelf`: one file a binary."""

    def __init__(self, folder: SignedFolder) -> None:
        self._folder = folder

    def known(self, binary: "Binary") -> dict[str, bytes]:
        """See `CodeShelf`."""
        body = self._folder.read(_name(binary))
        if body is None:
            return {}
        try:
            return msgspec.msgpack.decode(body, type=dict[str, bytes])
        except msgspec.MsgspecError:
            return {}

    def add(self, binary: "Binary", made: Mapping[str, bytes]) -> None:
        """See `CodeShelf`."""
        pieces = {**self.known(binary), **made}
        if sum(map(len, pieces.values())) <= MOST_BYTES:
            self._folder.write(_name(binary), msgspec.msgpack.encode(pieces, order="sorted"))


class CompiledFolder:
    """Implements `build.builder.CompiledShelf`: what NVRTC answered to a request in the same version, one file each."""

    def __init__(self, folder: SignedFolder) -> None:
        self._folder = folder

    def known(self, request: bytes) -> Compiled | None:
        """See `CompiledShelf`."""
        body = self._folder.read(_digest(request))
        if body is None:
            return None
        try:
            return msgspec.msgpack.decode(body, type=Compiled)
        except msgspec.MsgspecError:
            return None

    def add(self, request: bytes, made: Compiled) -> None:
        """See `CompiledShelf`."""
        self._folder.write(_digest(request), msgspec.msgpack.encode(made))


def machine_code_of(job: Job) -> CodeFolder:
    """The trial's machine code of the `cpu` device."""
    return CodeFolder(SignedFolder(job.folder / "cache" / "machine-code", code_key(job.private)))


def compiled_of(job: Job) -> CompiledFolder:
    """What was compiled in this trial."""
    return CompiledFolder(SignedFolder(job.folder / "cache" / "compiled", code_key(job.private)))


def _name(binary: "Binary") -> str:
    return f"{hashlib.sha256(binary.ptx.encode()).hexdigest()}.code"


def _digest(request: bytes) -> str:
    return f"{hashlib.sha256(request).hexdigest()}.compiled"
