"""What the device says of itself where a library's metadata cannot be read."""

import importlib.metadata

import msgspec

from kerneltrial.devices import messages
from kerneltrial.devices.cpu.device import open_cpu


def test_a_library_whose_version_cannot_be_told_is_unknown_and_the_runner_understands_it(monkeypatch) -> None:
    """`version` gave None in a child on an H200 machine, and the runner could not read the answer."""
    monkeypatch.setattr(importlib.metadata, "version", lambda name: None)
    device = open_cpu().device
    assert device.fingerprint["llvmlite"] == "unknown"
    sent = msgspec.msgpack.encode(messages.Described(device=device))
    assert msgspec.msgpack.decode(sent, type=messages.Reply) == messages.Described(device=device)
