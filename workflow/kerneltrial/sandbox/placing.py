"""Where new memory of this process lies: at one place, whatever was loaded and allocated before."""

import contextlib
import mmap
from collections.abc import Iterator

from kerneltrial.sandbox import libc

_LOWEST_STACK = 1 << 46  # above: libraries and mapped memory of a 64-bit x86 process, then its stack


@contextlib.contextmanager
def below(top: int) -> Iterator[None]:
    """Meanwhile the kernel places what is mapped below the address `top`, as all that is free above it is taken.

    Linux searches from the top down, so what is mapped first comes to lie at `top`. What was mapped meanwhile stays.
    Nothing happens on another processor, and what the host refuses to take stays free: then addresses are as before.
    """
    taken = [gap for gap in _gaps(top) if libc.take(*gap)] if libc.MACHINE == "x86_64" else []
    try:
        yield
    finally:
        for start, length in taken:
            libc.give_back(start, length)


def _gaps(top: int) -> list[tuple[int, int]]:
    """Start and length of what is free between `top` and the last mapping below the stack, which has to grow."""
    at, found = top, list[tuple[int, int]]()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
        for line in lines:  # one at a time: all at once take memory, which is free again, a gap, before it can be taken
            words = line.split(maxsplit=5)
            start, end = (int(word, 16) for word in words[0].split("-"))
            if start < _LOWEST_STACK or end <= top:
                continue
            if words[-1].rstrip() == "[stack]":
                break
            if start > at:
                found.append((at, start - at))
            at = max(at, end)
    return [(start, length) for start, length in found if length >= mmap.PAGESIZE]
