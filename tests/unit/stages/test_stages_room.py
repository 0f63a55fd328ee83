"""Whether there is room for a case of more than 2**31 elements: read from the machine, where the protocol asks."""

from types import SimpleNamespace

import msgspec
import pytest
from trial_pieces import CPU, H200, lock

from kerneltrial.records.protocol import Protocol
from kerneltrial.stages.room import available_bytes, room_of


def test_available_memory_is_what_linux_tells(tmp_path):
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:       2000 kB\nMemFree:         900 kB\nMemAvailable:   1234 kB\n")
    assert available_bytes(told) == 1234 * 1024
    told.write_text("MemTotal:       2000 kB\n")
    assert available_bytes(told) == 0
    assert available_bytes(tmp_path / "nowhere") == 0
    assert available_bytes() > 1 << 20


@pytest.mark.parametrize(
    ("device", "wanted", "asked"), [(H200, "winner", True), (H200, "none", False), (CPU, "winner", False)]
)
def test_it_is_asked_for_by_the_protocol_and_on_a_card_alone(device, wanted, asked):
    locked = msgspec.structs.replace(lock(device, "t"), protocol=Protocol(beyond_int32=wanted))
    room = room_of(SimpleNamespace(lock=locked))
    assert (room is not None) == asked
    if room is not None:
        assert room.device_bytes == int(device.fingerprint.get("memory_bytes", 0))
