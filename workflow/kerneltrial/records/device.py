"""Which device a trial runs on, and what is known of it."""

from typing import Literal

from kerneltrial.records.record import Record

DeviceKind = Literal["cpu", "cuda"]


class Device(Record):
    """`arch` is what is compiled for, such as sm_90a; `name` is the card's, or the host architecture on `cpu`.

    `fingerprint` holds what a measurement depends on, by name: driver, clocks' limits, ECC, MIG, host libraries.
    """

    kind: DeviceKind
    arch: str
    name: str
    fingerprint: dict[str, str]
