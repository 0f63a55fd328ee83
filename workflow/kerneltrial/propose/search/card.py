"""What limits how many blocks of a kernel are on a card at once: as much of the search as a prompt needs."""

import re
from dataclasses import dataclass, replace

from kerneltrial.records.device import Device

RESERVED_SHARED_BYTES = 1024  # a block's share that the system keeps


@dataclass(frozen=True)
class Card:
    """What limits how many blocks are resident on one multiprocessor."""

    multiprocessors: int = 132
    registers: int = 65_536
    shared_bytes: int = 233_472
    threads: int = 2_048
    blocks: int = 32
    assumed: bool = False  # the device does not tell, so this is a model: one Hopper card, such as an H100 or H200

    @property
    def block_shared_bytes(self) -> int:
        """The most shared memory of one block, static and dynamic together."""
        return self.shared_bytes - RESERVED_SHARED_BYTES


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; what is not here is like 9.0.
_HOPPER = Card()
_BY_CAPABILITY = {
    "75": Card(shared_bytes=64 * 1024, threads=1024, blocks=16),
    "80": Card(shared_bytes=164 * 1024),
    "86": Card(shared_bytes=100 * 1024, threads=1536, blocks=16),
    "87": Card(shared_bytes=164 * 1024, threads=1536, blocks=16),
    "89": Card(shared_bytes=100 * 1024, threads=1536, blocks=24),
    "120": Card(shared_bytes=100 * 1024, threads=1536, blocks=24),
    "121": Card(shared_bytes=100 * 1024, threads=1536, blocks=24),
}


def card_of(device: Device) -> Card:
    """Return the card's limits, by what it is compiled for; where the device does not tell how many multiprocessors
    it has (`cpu`), 132.
    """
    found = re.match(r"sm_(\d+)", device.arch)
    card = _BY_CAPABILITY.get(found[1], _HOPPER) if found else _HOPPER
    told = device.fingerprint.get("multiprocessors", "")
    counted = told.isdigit() and int(told) > 0
    return replace(card, multiprocessors=int(told)) if counted else replace(card, assumed=True)
