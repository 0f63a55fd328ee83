"""What an oracle prints: kept aside, so that it neither floods a terminal nor stands between the lines of a stage.

While an oracle runs, descriptors 1 and 2 lead into memory, so that what its libraries in C and its own children print
is kept too. The beginning and the end of it stay, and all of it is counted.
"""

import fcntl
import io
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Final, TextIO

from kerneltrial.inputs.problem import InputProblem
from kerneltrial.store.printed import printed

KEPT_BYTES: Final = 1 << 16  # of the beginning, and as many of the end
_SHOWN: Final = 200  # characters of the last line
_STREAMS: Final = (1, 2)


class Heard:
    """What was printed so far, over all calls of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._restore = ExitStack()
        self._memory: TextIO | None = None
        self._begin = self._end = b""
        self._bytes = self._lines = 0

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Keep aside what the block prints; an `InputProblem` of it is told with the last line, where there is one.

        Several threads may be inside, and a child that was forked inside stays there.
        """
        self._enter()
        try:
            yield
        except InputProblem as problem:
            last = self._leave()
            if not last:
                raise
            raise InputProblem(f"{problem}; the last line that it printed: {last}") from None
        except BaseException:
            self._leave()
            raise
        self._leave()

    def taken(self) -> tuple[bytes, int, int]:
        """What is kept, how many bytes and how many lines there were; afterwards nothing is."""
        with self._lock:
            dropped = self._bytes - len(self._begin) - len(self._end)
            between = f"\n... {dropped} bytes ...\n".encode() if dropped else b""
            found = (self._begin + between + self._end, self._bytes, self._lines)
            self._begin = self._end = b""
            self._bytes = self._lines = 0
        return found

    def _enter(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside > 1:
                return
            if self._memory is None:
                self._memory = _memory()
            for number in _STREAMS:
                self._lead_aside(number, self._memory.fileno())
            self._restore.enter_context(redirect_stdout(self._memory))
            self._restore.enter_context(redirect_stderr(self._memory))

    def _lead_aside(self, number: int, to: int) -> None:
        """Have a descriptor lead to another, until the way back is taken."""
        stream = sys.stdout if number == 1 else sys.stderr
        if stream is not None:
            stream.flush()
        try:
            before = os.dup(number)
        except OSError:  # it was closed when the process began
            return
        self._restore.callback(os.close, before)
        self._restore.callback(os.dup2, before, number)
        os.dup2(to, number)

    def _leave(self) -> str:
        """The last line that was printed, fit to be shown; nothing where another thread is still inside."""
        with self._lock:
            self._inside -= 1
            if self._inside:
                return ""
            assert self._memory is not None
            self._restore.close()
            return self._collect(self._memory.fileno())

    def _collect(self, memory: int) -> str:
        size = os.fstat(memory).st_size
        if not size:
            return ""
        begin = os.pread(memory, max(KEPT_BYTES - len(self._begin), 0), 0)
        rest = size - len(begin)
        self._end = (self._end + os.pread(memory, min(rest, KEPT_BYTES), size - min(rest, KEPT_BYTES)))[-KEPT_BYTES:]
        tail = os.pread(memory, 4096, max(size - 4096, 0))
        self._begin += begin
        self._bytes += size
        self._lines += _lines(memory, size)
        os.ftruncate(memory, 0)
        lines = [line for line in tail.decode(errors="replace").splitlines() if line.strip()]
        return repr(printed(lines[-1].strip())[:_SHOWN]) if lines else ""


def _memory() -> TextIO:
    descriptor = os.memfd_create("oracle")
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)  # whoever writes, and after it was emptied too
    return io.TextIOWrapper(io.FileIO(descriptor, "w"), encoding="utf-8", errors="replace", write_through=True)


def _lines(memory: int, size: int) -> int:
    count, block, last = 0, 1 << 20, b""
    for place in range(0, size, block):
        last = os.pread(memory, block, place)
        count += last.count(b"\n")
    return count + (not last.endswith(b"\n"))


def amount(size: int, lines: int) -> str:
    """How much an oracle printed, in words; nothing where it printed nothing."""
    return f"the oracle printed {lines:,} line{'s' * (lines > 1)} ({size:,} bytes)" if size else ""


HEARD: Final = Heard()
