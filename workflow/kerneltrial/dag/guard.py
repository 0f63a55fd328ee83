"""One run at a time on a results folder, and no stage that outlives its run."""

import ctypes
import fcntl
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_RUN = "KERNELTRIAL_RUN"
_held: list[int] = []


def only_run(folder: Path) -> bool:
    """Lock a results folder until this process ends, however it ends. False where another run holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    _held.append(descriptor)
    return True


def announce_run(process: int | None = None) -> None:
    """Tell the stages that this process starts who their run is: this process, or another that they die with."""
    os.environ[_RUN] = str(process or os.getpid())


def under_run() -> bool:
    """Whether a workflow run started this process."""
    return _RUN in os.environ


def die_with_parent() -> None:
    """Have the kernel end this process when its parent is gone; end at once where it is gone already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.environ.get(_RUN, str(os.getppid())) != str(os.getppid()):
        sys.exit("the run that started this stage is gone")
