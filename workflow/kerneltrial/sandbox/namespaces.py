"""Namespaces: a child without the host's network, shared memory and process ids."""

import contextlib
import os
from pathlib import Path
from typing import Literal

from kerneltrial.sandbox import libc

IPC, USER, PID, NETWORK = 0x08000000, 0x10000000, 0x20000000, 0x40000000
Kind = Literal["user+network+ipc+pid", "network+ipc+pid", "user+network", "network", "none"]

# what is tried, best first; a driver keeps the host's process ids, and root its standing with the driver
_STRICT: tuple[Kind, ...] = ("user+network+ipc+pid", "network+ipc+pid", "user+network", "network", "none")
_DRIVER: tuple[Kind, ...] = ("network", "user+network", "none")
_FLAGS = {"user": USER, "network": NETWORK, "ipc": IPC, "pid": PID}


def enter(kind: Kind) -> None:
    """Leave the host's namespaces; a new process id namespace holds for children made after this."""
    if kind == "none":
        return
    names = kind.split("+")
    user, group = os.geteuid(), os.getegid()
    libc.unshare(sum(_FLAGS[name] for name in names))
    if "user" in names:
        with contextlib.suppress(OSError):  # absent before Linux 3.19
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def best(driver: bool) -> Kind:
    """What this host lets a process enter, found by trying in processes that end at once."""
    return next(kind for kind in (_DRIVER if driver else _STRICT) if _works(kind))


def _works(kind: Kind) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            enter(kind)
            if "pid" in kind:
                inner = os.fork()
                if inner == 0:
                    os._exit(0)
                code = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
            else:
                code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
