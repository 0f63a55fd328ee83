"""Which means of confinement this host has. They are probed, never assumed."""

import functools

from kerneltrial.records.record import Count, Record
from kerneltrial.sandbox import landlock, namespaces, seccomp


class Means(Record):
    """What children are confined by: namespaces (for compilers and simulators, and for the child that opens a GPU),
    the ABI of Landlock (0: none), and whether system calls are filtered.
    """

    namespaces: namespaces.Kind
    driver_namespaces: namespaces.Kind
    landlock: Count
    seccomp: bool


@functools.cache
def probe() -> Means:
    """Try every means once. Forks children that end at once."""
    return Means(
        namespaces=namespaces.best(driver=False),
        driver_namespaces=namespaces.best(driver=True),
        landlock=landlock.version(),
        seccomp=seccomp.available(),
    )


def report() -> dict[str, str]:
    """The means in force, in words, for records and for `doctor`."""
    means = probe()
    files = f"Landlock ABI {means.landlock}" if means.landlock else "none: children can read the user's files"
    return {
        "namespaces": means.namespaces if "network" in means.namespaces else "none: children can reach the network",
        "namespaces_gpu": means.driver_namespaces,
        "files": files,
        "system_calls": "seccomp filter" if means.seccomp else "none",
        "limits": "wall clock, processor time, address space, file size, processes",
    }
