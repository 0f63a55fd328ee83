"""Which means of confinement this host has. They are probed, never assumed."""

import functools
import subprocess
import sys

import msgspec

from kerneltrial.records.record import Count, Record
from kerneltrial.sandbox import landlock, namespaces, seccomp
from kerneltrial.sandbox.namespaces import Kind


class Means(Record):
    """What children are confined by: namespaces (for compilers and simulators, and for the child that opens a GPU),
    the ABI of Landlock (0: none), and whether system calls are filtered.
    """

    namespaces: Kind
    driver_namespaces: Kind
    landlock: Count
    seccomp: bool


def probe() -> Means:
    """Try every means. Forks children that end at once, so it is for a process with one thread."""
    return Means(
        namespaces=namespaces.best(driver=False),
        driver_namespaces=namespaces.best(driver=True),
        landlock=landlock.version(),
        seccomp=seccomp.available(),
    )


def begin() -> None:
    """Start to try, so that `report` or `lacking` need not wait for it as long."""
    _trying.append(_tries())


@functools.cache
def _probed() -> Means:
    """The same from any process: a fresh one tries."""
    process = _trying.pop() if _trying else _tries()
    told, _ = process.communicate(timeout=60)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return msgspec.json.decode(told, type=Means)


_trying: list[subprocess.Popen[bytes]] = []


def _tries() -> subprocess.Popen[bytes]:
    from kerneltrial.sandbox.environment import environment

    words = [sys.executable, "-P", "-m", "kerneltrial.sandbox.means"]
    return subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def report() -> dict[str, str]:
    """The means in force, in words, for records and for `doctor`. Takes a fifth of a second the first time."""
    means = _probed()
    files = f"Landlock ABI {means.landlock}" if means.landlock else "none: children can read the user's files"
    return {
        "namespaces": means.namespaces if "network" in means.namespaces else "none: children can reach the network",
        "namespaces_gpu": means.driver_namespaces,
        "files": files,
        "system_calls": "seccomp filter" if means.seccomp else "none",
        "limits": "wall clock, processor time, address space, file size"
        + (", no new processes" if means.seccomp else ""),
    }


def lacking() -> str:
    """What keeps this host from confining a child, in words; empty where nothing does."""
    means = _probed()
    absent = [
        *(["namespaces without a network"] if "network" not in means.namespaces else []),
        *(["Landlock"] if not means.landlock else []),
        *(["a seccomp filter"] if not means.seccomp else []),
    ]
    return " and ".join(absent)


if __name__ == "__main__":
    print(msgspec.json.encode(probe()).decode())
