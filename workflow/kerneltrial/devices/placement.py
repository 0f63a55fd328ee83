"""Where a buffer begins, the same on every device: shifted by a multiple of what the contract promises.

A contract promises each address for itself. A kernel that takes two buffers to be aligned alike, or by more than was
promised, is right while all are shifted together; so every buffer of every draw has a shift of its own.
"""

import hashlib
from collections.abc import Sequence
from random import Random
from typing import Final

from kerneltrial.devices.device import Conditions
from kerneltrial.inputs.calls import Buffer

_SPAN_BYTES: Final = 64  # shifts reach beyond every vector access (16 bytes) and a sector (32)


def offset_of(conditions: Conditions, name: str) -> int:
    """Bytes by which the buffer `name` is shifted: 0, or a multiple of `offset_bytes` under 64 (0 or once, above)."""
    unit = conditions.offset_bytes
    if unit == 0:
        return 0
    drawn = int.from_bytes(hashlib.sha256(f"place {conditions.seed} {name}".encode()).digest()[:8], "little")
    return unit * (drawn % max(2, _SPAN_BYTES // unit))


def order_of(conditions: Conditions, buffers: Sequence[Buffer]) -> list[Buffer]:
    """The buffers in the order in which they lie in memory where they share an allocation, drawn from the seed."""
    drawn = list(buffers)
    Random(f"order {conditions.seed}").shuffle(drawn)
    return drawn
