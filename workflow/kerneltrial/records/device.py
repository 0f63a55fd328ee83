"""Which device a trial runs on, and what is known of it."""

from typing import Literal

from kerneltrial.records.record import Record

_ABSENT = "absent"
DeviceKind = Literal["cpu", "cuda"]


class Device(Record):
    """`arch` is what is compiled for, such as sm_90a; `name` is the card's, or the host architecture on `cpu`.

    `fingerprint` holds what a measurement depends on, by name: driver, clocks' limits, ECC, MIG, host libraries.
    """

    kind: DeviceKind
    arch: str
    name: str
    fingerprint: dict[str, str]


def changes(locked: Device, here: Device) -> tuple[str, ...]:
    """What differs between the device of a lock and the one that is here, one text each, in order of names.

    What could not be read on either side (`absent: ...`) is no change.
    """
    pairs = {"device": (locked.name, here.name)}
    for name in sorted({*locked.fingerprint, *here.fingerprint}):
        pairs[name] = (locked.fingerprint.get(name, _ABSENT), here.fingerprint.get(name, _ABSENT))
    return tuple(
        f"{name.replace('_', ' ')} is {now} here, {then} in the lock"
        for name, (then, now) in pairs.items()
        if then != now and not then.startswith(_ABSENT) and not now.startswith(_ABSENT)
    )
