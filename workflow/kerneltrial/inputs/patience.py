"""How long trusted Python of the trial's owner may take: an oracle may loop on one case and not on others.

It runs in the judge's own process, which holds what is right, so it cannot be killed like a child. After the limit an
exception is raised in its thread, again every second, since it may catch one. Code in C that holds Python's lock hears
none; the system's alarm ends the process then.
"""

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

GRACE_S: Final = 30.0
_AGAIN_S: Final = 1.0


class TookTooLongError(BaseException):
    """The limit is over; no `Exception`, so that code which catches all exceptions does not hold it up."""


class _Limit:
    """Raises `TookTooLongError` in the thread that made it once `seconds` have passed, until it is called off."""

    def __init__(self, seconds: float) -> None:
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self.fired = False
        self._watching = threading.Thread(target=self._watch, args=(seconds,), daemon=True)
        self._watching.start()

    def _watch(self, seconds: float) -> None:
        wait = seconds
        while not self._over.wait(wait):
            with self._lock:
                if self._over.is_set():
                    return
                self.fired = True
                self._raise()
            wait = _AGAIN_S

    def call_off(self) -> None:
        """After this nothing is raised; one that is on its way is raised and caught here."""
        with self._lock:
            self._over.set()
        if self.fired:  # taking it back instead would have CPython look for it at every call from then on
            with suppress(TookTooLongError):
                self._raise()
                for _ in range(100):
                    pass
        self._watching.join()  # a process that forks next has one thread less

    def _raise(self) -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(TookTooLongError))


@contextmanager
def limited(seconds: float, grace_s: float = GRACE_S) -> Iterator[None]:
    """Do what the block does; `TookTooLongError` where it takes longer.

    What does not hear it is ended by SIGALRM `grace_s` later, with the whole process. The alarm is set only where
    nobody else uses it.
    """
    alarm = signal.getsignal(signal.SIGALRM) == signal.SIG_DFL and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    if alarm:
        signal.setitimer(signal.ITIMER_REAL, seconds + grace_s)
    limit = _Limit(seconds)
    try:
        try:
            yield
        finally:
            _end(limit, alarm)
    except TookTooLongError:
        _end(limit, alarm)  # it came behind the block, before the first end; the next one is a second away
        raise
    if limit.fired:
        raise TookTooLongError


def _end(limit: _Limit, alarm: bool) -> None:
    while True:
        with suppress(TookTooLongError):  # may come between any two steps
            limit.call_off()
            if alarm:
                signal.setitimer(signal.ITIMER_REAL, 0)
            return
