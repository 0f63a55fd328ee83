"""What compute-sanitizer said is a measurement: found again where all tools looked, asked again where one did not."""

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from trial_pieces import CPU, H200, lock

from kerneltrial.devices.cuda.sanitizer import Sanitizer
from kerneltrial.devices.device import Binary
from kerneltrial.inputs.calls import Buffer, Call
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.sanitizer import TOOLS, Looked, NotLooked, Sanitized
from kerneltrial.stages.sanitizing import sanitizer_of
from kerneltrial.store.measurements import Measurements

CALL = Call(buffers=(Buffer(name="x", role="input", dtype="float32", shape=(2,), initial="given"),), launches=())
BINARY = Binary(ptx="", cubin=b"one")


def ground(tmp_path, device=H200, sanitizers="all"):
    locked = msgspec.structs.replace(lock(device, "t"), protocol=Protocol(sanitizers=sanitizers))
    return SimpleNamespace(lock=locked, nursery=None, job=SimpleNamespace(measurements=Measurements(tmp_path)))


def asked(value: float = 1.0):
    return [("small", CALL, {"x": np.full(2, value, np.float32)})]


@pytest.fixture
def said(monkeypatch):
    """What the tools say, and how often they were asked."""
    told = SimpleNamespace(tools=[Looked(tool=t, cases=("small",), findings=(), unchecked=()) for t in TOOLS], asked=0)

    def look(self, request, cases):
        told.asked += 1
        return Sanitized(tools=tuple(told.tools))

    monkeypatch.setattr(Sanitizer, "look", look)
    return told


def test_the_word_of_all_tools_is_found_again_for_equal_binaries_and_values_alone(tmp_path, said):
    sanitizes = sanitizer_of(ground(tmp_path))
    first = sanitizes(BINARY, asked())
    said.tools = []
    assert sanitizes(BINARY, asked()) == first
    assert sanitizer_of(ground(tmp_path))(BINARY, asked()) == first
    assert said.asked == 1
    sanitizes(Binary(ptx="", cubin=b"other"), asked())
    sanitizes(BINARY, asked(2.0))
    assert said.asked == 3


def test_where_a_tool_did_not_look_it_is_asked_again(tmp_path, said):
    absent = NotLooked(tool="synccheck", why="it did not end within 60 s")
    whole = list(said.tools)
    said.tools = [*whole[:3], absent]
    assert sanitizer_of(ground(tmp_path))(BINARY, asked()).tools[3] == absent
    assert not list(tmp_path.iterdir())
    said.tools = whole
    assert sanitizer_of(ground(tmp_path))(BINARY, asked()) == Sanitized(tools=tuple(whole))
    assert said.asked == 2


@pytest.mark.parametrize(
    ("device", "wanted", "of_candidates", "of_winner"),
    [
        (H200, "all", True, True),
        (H200, "winner", False, True),
        (H200, "none", False, False),
        (CPU, "all", False, False),
    ],
)
def test_who_is_looked_at_is_the_protocols_word(tmp_path, device, wanted, of_candidates, of_winner):
    g = ground(tmp_path, device, wanted)
    assert (sanitizer_of(g) is not None) == of_candidates
    assert (sanitizer_of(g, winner=True) is not None) == of_winner
