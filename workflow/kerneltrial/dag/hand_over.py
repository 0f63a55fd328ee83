"""What a rule starts: it hands a stage to the run's stem and ends as the stage does.

It is run as a file, without site-packages, since a Python that imports nothing starts in a quarter of the time. Where
there is no stem, or it does not answer, the stage is started as a person would start it.
"""

import os
import signal
import socket
import struct
import sys

_ONE_THREAD = "OPENBLAS_NUM_THREADS"  # with another number the stem's numerical library is not this job's


def main() -> int:
    """Hand the stage over and return its status, or become the process that runs it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever stops a run waits for no trace of this file
    name = os.environ.get("KERNELTRIAL_STEM")
    if name and os.environ.get(_ONE_THREAD) == "1":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stem:
            try:
                taken = _handed(stem, name)
            except OSError:
                taken = False
            if taken:
                return _end(stem)
    return os.execv(sys.executable, [sys.executable, "-m", "kerneltrial", *sys.argv[1:]])  # does not return


def _handed(stem: socket.socket, name: str) -> bool:
    """Whether the stem has taken the stage, with arguments, folder, environment and standard streams of this job."""
    stem.connect(f"\0{name}")
    words = [os.fsencode(word) for word in sys.argv[1:]]
    variables = [key + b"=" + value for key, value in os.environb.items()]
    request = b"\0".join([str(len(words)).encode(), *words, os.getcwdb(), *variables])
    socket.send_fds(stem, [struct.pack("<Q", len(request))], [0, 1, 2])
    stem.sendall(request)
    return stem.recv(1) == b"t"


def _end(stem: socket.socket) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it goes to both, and the stage answers it
    told = b""
    while len(told) < 4 and (part := stem.recv(4 - len(told))):
        told += part
    if len(told) < 4:
        print("kerneltrial: the process that held this stage was ended; run the same command again", file=sys.stderr)
        return 3
    status = int.from_bytes(told, "little", signed=True)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main())
