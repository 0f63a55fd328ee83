"""Clean processes that hold what nurseries need, kept for a whole run: the server of a nursery is forked from one.

To import LLVM, or to start a compiler, takes longer than most of what a stage then asks of it, and each stage of a run
wants the same. A kept process serves nobody itself: it forks a server for every socket that arrives, so each nursery
has one of its own, as clean as the first. It is the same program, started in the same way, as that of a nursery that
starts its own (workflow/adr/0048-stages-are-forked.md).
"""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence

from kerneltrial.sandbox import libc, spent
from kerneltrial.sandbox.environment import environment

_kept: dict[tuple[str, ...], socket.socket] = {}


def launch(
    control: socket.socket, preload: Sequence[str], *, fixed: bool, keep: bool = False
) -> subprocess.Popen[bytes]:
    """Start the clean process behind `control`; with `keep` one that forks servers in place of serving itself."""
    # The kernel ties "dies with its parent" to the thread that forks, so only the main thread asks for it; the
    # server ends by itself too when its socket closes.
    dies = threading.current_thread() is threading.main_thread()
    with libc.fixed_addresses() if fixed else contextlib.nullcontext():
        return subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "kerneltrial.sandbox.server"),
                *(str(control.fileno()), str(os.getpid()), "1" if dies else "0", "1" if keep else "0", *preload),
            ],
            env=environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(control.fileno(),),
            start_new_session=True,
        )


def keep(preload: Sequence[str]) -> None:
    """Keep a clean process that holds `preload`, for this process and what is forked from it later."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        launch(theirs, preload, fixed=True, keep=True)
    _kept[tuple(preload)] = ours


def take(preload: tuple[str, ...]) -> socket.socket | None:
    """The control socket of a new server that holds `preload`; None where nothing is kept that does.

    What holds more will do, where `preload` was loaded first.
    """
    kept = next((there for names, there in _kept.items() if preload and names[: len(preload)] == preload), None)
    if kept is None:
        return None
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            socket.send_fds(kept, [b"s"], [theirs.fileno()])
        except OSError:  # it is gone
            ours.close()
            return None
    return ours


def settle(control: socket.socket) -> None:
    """Let a server that was forked here end, and take over its account of what its children used."""
    with contextlib.suppress(OSError):
        control.shutdown(socket.SHUT_WR)
        control.settimeout(2.0)
        told = control.recv(64)
        spent.add(float(told) if told else 0.0)
