"""The few calls of the C library that Python does not offer, with errors as OSError."""

import contextlib
import ctypes
import functools
import mmap
import os
import platform
import resource
import signal
from collections.abc import Iterator

PR_SET_PDEATHSIG = 1
PR_GET_SECCOMP = 21
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
ADDR_NO_RANDOMIZE = 0x0040000
_M_MMAP_THRESHOLD = -3  # glibc's malloc.h
_ASK = 0xFFFFFFFF  # personality(2): change nothing, return what is in force
_MAP_NORESERVE, _MAP_FIXED_NOREPLACE = 0x4000, 0x100000  # mman.h of x86-64
_STACK = 8 << 20  # bytes, what systems give by default

MACHINE = platform.machine()


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> int:
    """Return `result`, or raise the OSError of a call that gave -1."""
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def prctl(option: int, first: int = 0, second: int = 0) -> int:
    """`prctl(2)`; unused arguments are zero, as newer options demand."""
    arguments = [ctypes.c_ulong(value) for value in (first, second, 0, 0)]
    return checked(_library().prctl(ctypes.c_int(option), *arguments), f"prctl({option})")


def syscall(number: int, *arguments: object) -> int:
    """A raw system call."""
    _library().syscall.restype = ctypes.c_long
    return checked(int(_library().syscall(ctypes.c_long(number), *arguments)), f"syscall {number}")


def unshare(flags: int) -> None:
    """`unshare(2)`."""
    checked(_library().unshare(ctypes.c_int(flags)), f"unshare({flags:#x})")


@contextlib.contextmanager
def fixed_addresses() -> Iterator[bool]:
    """Programs that this thread starts meanwhile get the same addresses each time; False where the host refuses.

    A container engine's default filter may refuse it (`personality(2)` with ADDR_NO_RANDOMIZE). A stack without a
    bound would turn the order of mapped memory round, so a program gets a bound then.
    """
    before = _library().personality(ctypes.c_ulong(_ASK))
    refused = before == -1 or _library().personality(ctypes.c_ulong(before | ADDR_NO_RANDOMIZE)) == -1
    stack = resource.getrlimit(resource.RLIMIT_STACK)
    if stack[0] == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_STACK, (_STACK, stack[1]))
    try:
        yield not refused
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, stack)
        if not refused:
            _library().personality(ctypes.c_ulong(before))


def take(start: int, length: int) -> bool:
    """Map nothing at these addresses, so that nothing else comes to lie there; whether that was done."""
    library = _library()
    library.mmap.restype = ctypes.c_void_p
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE | _MAP_FIXED_NOREPLACE
    arguments = (ctypes.c_void_p(start), ctypes.c_size_t(length), 0, flags, -1, ctypes.c_long(0))
    got = library.mmap(*arguments)
    if got == start:
        return True
    if got not in (None, ctypes.c_void_p(-1).value):  # an old kernel took the address for a wish
        give_back(got, length)
    return False


def give_back(start: int, length: int) -> None:
    """`munmap(2)`."""
    _library().munmap(ctypes.c_void_p(start), ctypes.c_size_t(length))


def large_blocks_on_the_heap() -> None:
    """Have glibc map no block below 32 MiB by itself (its largest M_MMAP_THRESHOLD); nothing elsewhere."""
    with contextlib.suppress(AttributeError):
        _library().mallopt(_M_MMAP_THRESHOLD, 32 << 20)


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that made it ends."""
    prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


class _CapabilityHead(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def drop_capabilities() -> None:
    """Give up every capability, also those that a later program could win back."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # unknown to this kernel, or this process had none to drop
            break
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    head = _CapabilityHead(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3
    nothing = (ctypes.c_uint32 * 6)()
    checked(_library().capset(ctypes.byref(head), ctypes.byref(nothing)), "capset")
