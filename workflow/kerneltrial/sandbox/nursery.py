"""The nursery: one clean process from which limited children are forked, in milliseconds each."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec

from kerneltrial.sandbox import framing, libc
from kerneltrial.sandbox.conversation import Conversation
from kerneltrial.sandbox.limits import Limits, View
from kerneltrial.sandbox.problem import SandboxProblem
from kerneltrial.sandbox.supervisor import Opening

_READY_S = 120.0
_KEPT = (
    "CONDA_PREFIX",
    "CUDA_DEVICE_ORDER",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
)


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
        ours, theirs = socket.socketpair()
        # The kernel ties "dies with its parent" to the thread that forks, so only the main thread asks for it; the
        # server ends by itself too when its socket closes.
        dies = threading.current_thread() is threading.main_thread()
        with theirs, libc.fixed_addresses() if self._fixed else contextlib.nullcontext():
            self._server = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "kerneltrial.sandbox.server"),
                    *(str(theirs.fileno()), str(os.getpid()), "1" if dies else "0", *self._preload),
                ],
                env=environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._control = ours
        return self

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
            try:
                told = framing.receive(self._control, 1 << 16, time.monotonic() + _READY_S)
            except (framing.Closed, TimeoutError):
                told = b"it ended or hung before it was ready"
            if told:
                raise SandboxProblem(f"sandbox: the nursery cannot start: {told.decode(errors='replace')}")
            self._ready = True
            self._control.settimeout(None)
        return self._control

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._control is not None:
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


def environment() -> dict[str, str]:
    """The clean environment: what Python and the CUDA libraries need to be found, and nothing else."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    paths = [path for path in sys.path if path and os.path.isdir(path)]
    return kept | {
        "CUDA_CACHE_DISABLE": "1",
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "1",  # a process with threads is not to be forked
        "OMP_NUM_THREADS": "1",
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(paths),
        "TZ": "UTC",
    }
