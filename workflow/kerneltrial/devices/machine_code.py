"""Machine code that a device made of a binary, by key: what a child hands back, and what a later one starts from."""

from collections.abc import Mapping

MOST_BYTES = 64 << 20
"""Of one binary; what goes beyond is made again each time."""


class MachineCode:
    """Pieces of code for one binary: `known` from an earlier child, `made` in this one."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}
        self.made: dict[str, bytes] = {}

    def restart(self, known: Mapping[str, bytes]) -> None:
        """Begin with another binary, of which this is known."""
        self._known, self.made = dict(known), {}

    def get(self, key: str) -> bytes | None:
        """A piece, or None."""
        return self._known.get(key) or self.made.get(key)

    def put(self, key: str, piece: bytes) -> None:
        """Keep a piece that was made, as long as there is room."""
        if sum(map(len, (*self._known.values(), *self.made.values()))) + len(piece) <= MOST_BYTES:
            self.made[key] = piece
