"""The nursery: one clean process from which limited children are forked, in milliseconds each."""

import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec

from kerneltrial.sandbox import framing, kept
from kerneltrial.sandbox.conversation import Conversation
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.problem import SandboxProblem
from kerneltrial.sandbox.supervisor import Opening

_READY_S = 120.0


class Nursery:
    """A context manager around the clean process.

    `preload` names modules to import there (`package.module`), or functions to call too (`package.module:function`).
    Conversations of one nursery may be led from several threads. Its processes get the same addresses each time where
    the host allows it, as NVRTC's output depends on them (workflow/adr/0030-equal-binaries.md); `fixed=False`: not so.
    """

    def __init__(self, preload: Sequence[str] = (), *, fixed: bool = True) -> None:
        self._preload = tuple(preload)
        self._fixed = fixed
        self._lock = threading.Lock()
        self._ready = False
        self._control: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._control = kept.take(self._preload) if self._fixed else None
        if self._control is None:
            self._start()
        return self

    def _start(self) -> None:
        """Start a clean process of one's own."""
        self._control, theirs = socket.socketpair()
        with theirs:
            self._server = kept.launch(theirs, self._preload, fixed=self._fixed)

    def open(
        self, function: str, argument: bytes, limits: Limits, view: View, longest_reply: int = 1 << 28
    ) -> Conversation:
        """Start `function` ("package.module:name") in a limited child; replies hold at most `longest_reply` bytes.

        Raises `SandboxProblem` where the clean process did not start.
        """
        talk, far_talk = socket.socketpair()
        status, far_status = socket.socketpair()
        with far_talk, far_status, self._lock:
            control = self._started()
            try:
                socket.send_fds(control, [b"o"], [far_talk.fileno(), far_status.fileno()])
            except OSError as problem:
                raise SandboxProblem(f"sandbox: the nursery has ended ({problem}); start the stage again") from problem
        opening = Opening(function=function, limits=limits, view=view)
        deadline = time.monotonic() + limits.wall_s
        with contextlib.suppress(framing.Closed, TimeoutError):  # the first ask will tell
            framing.send(status, msgspec.msgpack.encode(opening), deadline)
            framing.send(talk, argument, deadline)
        return Conversation(talk, status, longest_reply)

    def _started(self) -> socket.socket:
        if self._control is None:
            raise SandboxProblem("sandbox: the nursery is not open; use it as a context manager")
        if not self._ready:
            told = self._told()
            if told and self._server is None:  # the kept process could not: one's own says why
                self._control.close()
                self._start()
                told = self._told()
            if told:
                raise SandboxProblem(f"sandbox: the nursery cannot start: {told.decode(errors='replace')}")
            self._ready = True
            self._control.settimeout(None)
        return self._control

    def _told(self) -> bytes:
        """What the clean process says when it is ready: nothing, or what went wrong."""
        assert self._control is not None
        try:
            return framing.receive(self._control, 1 << 16, time.monotonic() + _READY_S)
        except (framing.Closed, TimeoutError):
            return b"it ended or hung before it was ready"

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._control is not None:
            if self._server is None and self._ready:
                kept.settle(self._control)
            self._control.close()
            self._control = None
        if self._server is not None:
            if not self._ready:  # nothing was forked from it, and it may be importing still: nobody waits for that
                self._server.kill()
            try:
                self._server.wait(timeout=2.0)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
            self._server = None
