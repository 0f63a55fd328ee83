"""A filter over system calls, as a classic BPF program (`linux/filter.h`, `linux/seccomp.h`).

It takes away what a compiler or a simulator never needs. It is a second wall behind Landlock and namespaces.
"""

import ctypes
import errno
import struct
from collections.abc import Sequence

from kerneltrial.sandbox import libc

_MODE_FILTER = 2
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _BITS, _ALWAYS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x05, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_THREAD = 0x00010000
_NAMESPACES = 0x7E020000
_X32 = 0x40000000

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# name: (x86_64, aarch64); None where the architecture has no such call
_CALLS: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "unshare": (272, 97),
    "setns": (308, 268),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "ioperm": (173, None),
    "iopl": (172, None),
}
_NOT_FOR_DRIVERS: dict[str, tuple[int | None, int | None]] = {
    "perf_event_open": (298, 241),
    "socket": (41, 198),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
_PROGRAMS: dict[str, tuple[int | None, int | None]] = {"execve": (59, 221), "execveat": (322, 281)}
_FORKS: dict[str, tuple[int | None, int | None]] = {"fork": (57, None), "vfork": (58, None)}
_CLONE, _CLONE3 = (56, 220), (435, 435)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def available() -> bool:
    """Whether this kernel filters calls and this module knows the architecture's numbers."""
    if libc.MACHINE not in _ARCHITECTURES:
        return False
    try:
        return libc.prctl(libc.PR_GET_SECCOMP) in (0, 2)
    except OSError:
        return False


def restrict(driver: bool, threads_only: bool, programs: bool = False) -> None:
    """Take calls away for good: fewer for a `driver`; new processes too where `threads_only`. Needs `no_new_privs`.

    `programs` leaves the calls that start a program; Landlock then says which.
    """
    code = program(libc.MACHINE, driver, threads_only, programs)
    described = _Program(len(code) // 8, code)
    libc.prctl(libc.PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(described))


def program(machine: str, driver: bool, threads_only: bool, programs: bool = False) -> bytes:
    """The filter as bytes of `struct sock_filter`."""
    column = 0 if machine == "x86_64" else 1
    named = dict(_CALLS)
    if not driver:
        named |= _NOT_FOR_DRIVERS
        if not programs:
            named |= _PROGRAMS
    if threads_only:
        named |= _FORKS
    denied = [number for numbers in named.values() if (number := numbers[column]) is not None]
    return _assemble(_ARCHITECTURES[machine], denied, (_CLONE[column], _CLONE3[column]), threads_only)


def _assemble(architecture: int, denied: Sequence[int], clones: tuple[int, int], threads_only: bool) -> bytes:
    clone, clone3 = clones
    no = _statement(_RETURN, _ERRNO | errno.EPERM)
    absent = _statement(_RETURN, _ERRNO | errno.ENOSYS)  # the C library then falls back to clone
    code = [
        _statement(_LOAD, _ARCHITECTURE),
        _jump(_EQUAL, architecture, 1, 0),
        _statement(_RETURN, _KILL),
        _statement(_LOAD, _NUMBER),
        _jump(_AT_LEAST, _X32, 0, 1),  # calls of the x32 ABI have numbers of their own
        absent,
    ]
    for number in denied:
        code += [_jump(_EQUAL, number, 0, 1), no]
    code += [_jump(_EQUAL, clone3, 0, 1), absent, _jump(_EQUAL, clone, 0, 4), _statement(_LOAD, _FIRST_ARGUMENT)]
    code += [_jump(_BITS, _NAMESPACES, 1, 0)]  # to the refusal
    code += [_jump(_BITS, _THREAD, 1, 0) if threads_only else _statement(_ALWAYS, 1)]  # past the refusal
    code += [no, _statement(_RETURN, _ALLOW)]
    return b"".join(code)


def _statement(operation: int, operand: int) -> bytes:
    return struct.pack("<HBBI", operation, 0, 0, operand)


def _jump(operation: int, operand: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("<HBBI", operation, if_true, if_false, operand)
