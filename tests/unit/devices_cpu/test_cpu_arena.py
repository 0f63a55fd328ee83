"""The memory of a call: what lies between its buffers is looked at as a whole."""

import numpy as np
import pytest
from ptx_runner import array, call_of, out

from kerneltrial.devices.cpu.arena import Arena
from kerneltrial.devices.device import Conditions

IMAGE = (bytes(range(1, 65)), bytes([5] * 20 + [0] * 30 + [7] * 14))
"""Variables of a module with a gap between them."""


@pytest.mark.parametrize("poison", ["nan", "huge", "plain"])
@pytest.mark.parametrize("image", [(b"", b""), IMAGE], ids=["no variables", "variables"])
def test_a_byte_that_is_no_buffer_s_is_missed(poison: str, image: tuple[bytes, bytes]) -> None:
    values = {"x": np.arange(37, dtype=np.float32), "z": np.zeros(0, np.float32)}
    call = call_of([array("x", values["x"]), array("z", values["z"]), out("y", "uint8", 13)], (1,), (1,))
    arena = Arena(call, values, Conditions(poison=poison, checks="bounds"), image)  # type: ignore[arg-type]
    assert arena.guards_intact()
    unused = arena.flags == 0
    assert 0 < np.count_nonzero(~unused) < 300
    edges = np.flatnonzero(np.diff(unused)) + 1
    for place in {
        0,
        arena.memory.size - 1,
        *edges,
        *(edges - 1),
        *np.random.default_rng(0).integers(0, unused.size, 50),
    }:
        arena.memory[place] ^= 1
        assert arena.guards_intact() == (not unused[place])
        arena.memory[place] ^= 1
    assert arena.guards_intact()
