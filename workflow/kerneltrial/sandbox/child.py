"""What runs inside the confined child: one function, and its conversation with the parent."""

import importlib
import socket

from kerneltrial.sandbox import framing

OUT_OF_MEMORY = 97  # exit status that tells the supervisor of a MemoryError
_LONGEST = 1 << 40  # the parent is trusted


class Requests:
    """The child's side of a conversation."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def get(self) -> bytes | None:
        """The next request, or None when the parent wants no more."""
        try:
            return framing.receive(self._sock, _LONGEST)
        except framing.Closed:
            return None

    def reply(self, payload: bytes) -> None:
        """Answer the last request."""
        framing.send(self._sock, payload)


def run(function: str, sock: socket.socket) -> int:
    """Call `package.module:name` with the argument that the parent sends; return the exit status."""
    requests = Requests(sock)
    argument = requests.get()
    if argument is None:
        return 0
    module, _, name = function.partition(":")
    try:
        getattr(importlib.import_module(module), name)(argument, requests)
    except MemoryError:
        return OUT_OF_MEMORY
    except framing.Closed:
        return 0
    return 0
