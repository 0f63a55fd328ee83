"""Landlock: which files a process may touch, from now on and for good.

Constants are those of `linux/landlock.h`; the call numbers are the same on every architecture.
"""

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterable

from kerneltrial.sandbox import libc

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1
_VERSION = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_FIRST = (1 << 13) - 1  # the thirteen rights of the first ABI
REFER, TRUNCATE, IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
_TCP = 0b11  # bind and connect
_SCOPES = 0b11  # abstract sockets and signals outside the domain


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The kernel's Landlock ABI, 0 where there is none."""
    try:
        return libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    except OSError:
        return 0


def handled(abi: int) -> int:
    """Rights over files that an ABI knows."""
    rights = _FIRST
    for first, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEVICE)):
        if abi >= first:
            rights |= right
    return rights


def restrict(abi: int, rules: Iterable[tuple[str, int]], keep_signals: bool) -> None:
    """Allow what `rules` (path, rights) say and nothing else.

    Paths that do not exist, or may not be opened, are left out: they cannot be touched then anyway. `keep_signals`
    leaves abstract sockets and signals as they are. Needs `no_new_privs`.
    """
    rights = handled(abi)
    attributes = _Ruleset(rights, _TCP if abi >= 4 else 0, _SCOPES if abi >= 6 and not keep_signals else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path, allowed in rules:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                _allow(ruleset, path, allowed & rights)
        libc.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            rights &= _OF_FILES
        beneath = _Beneath(rights, parent)
        libc.syscall(
            _ADD_RULE,
            ctypes.c_int(ruleset),
            ctypes.c_int(_RULE_PATH_BENEATH),
            ctypes.byref(beneath),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(parent)
