"""Messages over a stream socket: eight bytes of length, little-endian, then the payload."""

import socket
import struct
import time

_HEAD = struct.Struct("<Q")
_CHUNK = 1 << 20


class Closed(Exception):
    """The other side is gone."""


class TooLong(Exception):
    """The other side announced a message above the bound."""


def send(sock: socket.socket, payload: bytes, deadline: float | None = None) -> None:
    """Send one message; `deadline` is a `time.monotonic` instant. Raise `Closed` or `TimeoutError`."""
    try:
        for part in (_HEAD.pack(len(payload)), payload):
            sock.settimeout(_left(deadline))
            sock.sendall(part)
    except (BrokenPipeError, ConnectionError) as problem:
        raise Closed from problem


def receive(sock: socket.socket, limit: int, deadline: float | None = None) -> bytes:
    """Return one message of at most `limit` bytes. Raise `Closed`, `TooLong` or `TimeoutError`."""
    (length,) = _HEAD.unpack(_exactly(sock, _HEAD.size, deadline))
    if length > limit:
        raise TooLong(f"a message of {length} bytes, {limit} are allowed")
    return bytes(_exactly(sock, length, deadline))


def _exactly(sock: socket.socket, count: int, deadline: float | None) -> bytearray:
    """Grow with what arrives, so that an announced length alone takes no memory."""
    received = bytearray()
    while len(received) < count:
        sock.settimeout(_left(deadline))
        try:
            part = sock.recv(min(_CHUNK, count - len(received)))
        except ConnectionError as problem:
            raise Closed from problem
        if not part:
            raise Closed
        received += part
    return received


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
