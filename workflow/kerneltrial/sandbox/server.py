"""The nursery's clean process: `python -m kerneltrial.sandbox.server FD PARENT DIE KEEP MODULE…`.

It imports what children need, once, and forks a supervisor for every pair of sockets that arrives on FD. With KEEP it
forks a server instead, for every socket that arrives there (`sandbox.kept`). It holds no secrets: its environment was
made anew, and it sees no candidate.
"""

import contextlib
import gc
import importlib
import os
import resource
import signal
import socket
import sys
import traceback
from typing import NoReturn

from kerneltrial.sandbox import framing, libc, means, supervisor


def serve(control: socket.socket, preload: list[str]) -> None:
    """Import, tell the parent, then fork until the parent goes."""
    try:
        found = _prepared(preload)
    except Exception as problem:
        framing.send(control, f"{type(problem).__name__}: {problem}".encode())
        return
    _fork_children(control, found)


def keep(control: socket.socket, preload: list[str]) -> None:
    """Import, then fork a server for each socket that arrives, until nobody can ask any more.

    What cannot be imported ends this process; a nursery then starts a server of its own, which says why.
    """
    found = _prepared(preload)
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        _reap(os.WNOHANG)
        if not descriptors:
            break
        if os.fork() == 0:
            control.close()
            _serve_apart(descriptors[0], found)
        os.close(descriptors[0])


def _serve_apart(descriptor: int, found: means.Means) -> NoReturn:
    """Serve one nursery, whose stage is no parent of this process; at the end tell what children used."""
    try:
        libc.die_with_parent()
        with socket.socket(fileno=descriptor) as control:
            _fork_children(control, found)
            used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
            with contextlib.suppress(OSError):  # the stage was killed
                control.send(repr(sum(one.ru_utime + one.ru_stime for one in used)).encode())
    finally:
        os._exit(0)


def _prepared(preload: list[str]) -> means.Means:
    found = means.probe()
    for name in preload:
        _load(name)
    gc.collect()
    gc.freeze()  # children share these pages as long as nothing touches them
    return found


def _fork_children(control: socket.socket, found: means.Means) -> None:
    """Say that this process is ready, then fork a supervisor for each pair of sockets until the parent goes."""
    framing.send(control, b"")
    control.settimeout(None)
    life, held = os.pipe()  # while this process lives and serves, `life` stays silent
    while True:
        byte, descriptors, _, _ = socket.recv_fds(control, 1, 2)
        _reap(os.WNOHANG)
        if not byte:
            break
        if os.fork() == 0:
            os.close(held)
            control.close()
            _supervise(descriptors, life, found)
        for descriptor in descriptors:
            os.close(descriptor)
    os.close(held)
    _reap(0)


def _reap(options: int) -> None:
    """Wait for supervisors, so that the parent's account of its children's use holds theirs too."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def _supervise(descriptors: list[int], life: int, found: means.Means) -> None:
    code = 1
    try:
        talk, status = (socket.socket(fileno=descriptor) for descriptor in descriptors)
        supervisor.supervise(talk, status, life, found)
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(code)


def _load(name: str) -> None:
    """Import `package.module`; call `package.module:function` too, to warm what it warms."""
    module, _, function = name.partition(":")
    loaded = importlib.import_module(module)
    if function:
        getattr(loaded, function)()


def main(arguments: list[str]) -> None:
    descriptor, parent, dies, keeps, *preload = arguments
    if dies == "1":
        libc.die_with_parent()
        if os.getppid() != int(parent):
            return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    work = keep if keeps == "1" else serve
    work(socket.socket(fileno=int(descriptor)), preload)


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # all children have ended; the parent waits, and taking modules down takes a tenth of a second
