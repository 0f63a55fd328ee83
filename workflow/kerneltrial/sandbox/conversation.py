"""The parent's side of one child: ask, be answered, or learn how it ended."""

import contextlib
import socket
import time
from types import TracebackType
from typing import Self

import msgspec

from kerneltrial.sandbox import framing
from kerneltrial.sandbox.endings import Ended, Report, Usage

__all__ = ["Conversation", "Ended", "Usage"]

_DEATH_S = 30.0  # a killed process may hang in a driver for a while
_REPORT_BYTES = 1 << 20


class Conversation:
    """One child. Not to be used by two threads at once; several conversations may be."""

    def __init__(self, talk: socket.socket, status: socket.socket, longest_reply: int) -> None:
        self._talk = talk
        self._status = status
        self._longest = longest_reply
        self._report: Report | None = None
        self._why: Ended | None = None

    def ask(self, request: bytes, wall_s: float) -> bytes | Ended:
        """Send a request and return the reply, at most `wall_s` seconds later; after an end, that end again."""
        self.send(request, wall_s)
        return self.answer(wall_s)

    def send(self, request: bytes, wall_s: float) -> None:
        """Send a request, which `answer` must follow; that also tells what went wrong here."""
        if self._report is not None:
            return
        try:
            framing.send(self._talk, request, time.monotonic() + wall_s)
        except framing.Closed:
            self._end()
        except TimeoutError:
            self._give_up(Ended(how="wall", detail=f"took no request within {wall_s:g} s"))

    def answer(self, wall_s: float) -> bytes | Ended:
        """The reply to what was sent, at most `wall_s` seconds from now; after an end, that end again."""
        if self._report is not None:
            return self._report.ended
        try:
            return framing.receive(self._talk, self._longest, time.monotonic() + wall_s)
        except framing.Closed:
            return self._end().ended
        except TimeoutError:
            return self._give_up(Ended(how="wall", detail=f"no reply within {wall_s:g} s"))
        except framing.TooLong as problem:
            return self._give_up(Ended(how="exit", detail=f"broke the protocol: {problem}"))

    def _give_up(self, why: Ended) -> Ended:
        self._why = why
        self._kill()
        return self._end().ended

    def close(self, grace_s: float = 5.0) -> Usage:
        """Ask the child to end, kill it after `grace_s` seconds, and return what it used."""
        if self._report is None:
            with contextlib.suppress(OSError):
                self._talk.shutdown(socket.SHUT_RDWR)
            self._end(grace_s)
        self._talk.close()
        self._status.close()
        return self._end().usage

    def _kill(self) -> None:
        with contextlib.suppress(framing.Closed, TimeoutError):
            framing.send(self._status, b"kill", time.monotonic() + 1.0)

    def _end(self, grace_s: float = 1.0) -> Report:
        """Wait for the supervisor's word; a child that has closed its socket and lives on is killed."""
        if self._report is None:
            report = self._heard(grace_s)
            if report is None:
                self._kill()
                report = self._heard(_DEATH_S)
            if report is None:
                lost = Ended(how="signal", detail="the supervisor gave no account of the child")
                report = Report(ended=lost, usage=Usage(cpu_s=0.0, wall_s=0.0, max_rss_bytes=0))
            if self._why is not None:
                report = Report(ended=self._why, usage=report.usage)
            self._report = report
        return self._report

    def _heard(self, wall_s: float) -> Report | None:
        try:
            told = framing.receive(self._status, _REPORT_BYTES, time.monotonic() + wall_s)
        except (framing.Closed, TimeoutError):
            return None
        return msgspec.msgpack.decode(told, type=Report)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
