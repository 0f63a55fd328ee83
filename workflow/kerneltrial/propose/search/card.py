"""What limits how many blocks of a kernel are on a card at once: as much of the search as a prompt needs."""

from dataclasses import dataclass

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


def card_of(device: Device) -> Card:
    """Return the card's limits; where the device does not tell (`cpu`), those of a card with 132 multiprocessors."""
    told = device.fingerprint.get("multiprocessors", "")
    return Card(multiprocessors=int(told)) if told.isdigit() and int(told) > 0 else Card(assumed=True)
