"""In which order blocks and warps take their turns: place i of n goes to (i * stride + shift) mod n.

Forward is stride 1 and shift 0, backward stride n - 1 and shift n - 1. Shuffled is a stride that shares no factor with
n and a shift, drawn from a seed: neighbours then rarely follow each other, and neither end comes first.
"""

import hashlib
from math import gcd
from random import Random
from typing import NamedTuple

from kerneltrial.devices.device import Order


class Turns(NamedTuple):
    """See the module's text."""

    stride: int
    shift: int


def turns(count: int, order: Order, seed: int = 0) -> Turns:
    """The turns of `count` blocks or warps.

    >>> [(i * 5 + 5) % 6 for i in range(6)] == [5, 4, 3, 2, 1, 0] and turns(6, "backward")
    Turns(stride=5, shift=5)
    """
    if order == "forward" or count < 2:
        return Turns(1, 0)
    if order == "backward":
        return Turns(count - 1, count - 1)
    random = Random(hashlib.sha256(f"turns {seed} {count}".encode()).digest())
    stride = random.randrange(1, count)
    while gcd(stride, count) != 1:
        stride = stride % (count - 1) + 1
    return Turns(stride, random.randrange(count))
