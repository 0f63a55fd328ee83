"""The nursery's clean process: `python -m kerneltrial.sandbox.server FD PARENT DIE MODULE…`.

It imports what children need, once, and forks a supervisor for every pair of sockets that arrives on FD. It holds no
secrets: its environment was made anew, and it sees no candidate.
"""

import contextlib
import gc
import importlib
import os
import signal
import socket
import sys
import traceback

from kerneltrial.sandbox import framing, libc, means, supervisor


def serve(control: socket.socket, preload: list[str]) -> None:
    """Import, tell the parent, then fork until the parent goes."""
    try:
        found = means.probe()
        for name in preload:
            _load(name)
    except Exception as problem:
        framing.send(control, f"{type(problem).__name__}: {problem}".encode())
        return
    gc.collect()
    gc.freeze()  # children share these pages as long as nothing touches them
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
    descriptor, parent, dies, *preload = arguments
    if dies == "1":
        libc.die_with_parent()
        if os.getppid() != int(parent):
            return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    serve(socket.socket(fileno=int(descriptor)), preload)


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # all children have ended; the parent waits, and taking modules down takes a tenth of a second
