"""A stage of a workflow run, attended: another process waits for it and leaves in its log how it ended.

Snakemake knows no more than that a job failed, and a process that is killed, or that the trial's own Python ends by
`os._exit`, says nothing itself.
"""

import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

from kerneltrial.dag import guard
from kerneltrial.store.files import refused
from kerneltrial.store.printed import fault_of_ours


def run(main: Callable[[], int]) -> int:
    """Do `main`; where the arguments name a log, in a child that is waited for. Returns the exit status."""
    log = _log(sys.argv)
    if log is None:
        return main()
    if guard.under_run():
        guard.die_with_parent()
        guard.announce_run()  # to the child, this process is the run: it dies with it, as this one with Snakemake
    try:
        log.unlink(missing_ok=True)
    except OSError as fault:  # what an earlier run left there would be taken for this one's
        print(f"kerneltrial: {refused(fault) or fault}", file=sys.stderr)
        return 3
    gc.set_threshold(50_000, 20, 20)  # what imports leave behind is kept; to look through it again and again is in vain
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        status = _told(main, log)
        os.write(mouth, b"told")
        return status
    os.set_blocking(ear, False)  # what the child started may hold the other end for longer than the child lives
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it goes to both, and the child answers it
    status = os.waitpid(child, 0)[1]
    line = ended(status, _heard(ear))
    if not line:
        return os.waitstatus_to_exitcode(status)
    _leave(line, log)
    print(f"kerneltrial: {line}", file=sys.stderr)
    return 3


def _heard(ear: int) -> bool:
    """Whether the child came to the end of its work: its log may have found no place on a disk that is full."""
    try:
        return bool(os.read(ear, 4))
    except BlockingIOError:
        return False


def _told(main: Callable[[], int], log: Path) -> int:
    """Do `main`; an exception that nothing caught is ours: its trace is printed, and the log's line says so."""
    try:
        return main()
    except Exception as fault:
        traceback.print_exc()
        line = fault_of_ours(fault)
        _leave(line, log)
        print(f"kerneltrial: {line}", file=sys.stderr)
        return 3


def _leave(line: str, log: Path) -> None:
    with contextlib.suppress(OSError):  # the line is printed, too
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(line + "\n")


def leave(status: int) -> NoReturn:
    """End this process with `status`, and leave its memory to the system.

    To take down the modules of a cheap stage one by one costs about as much as its own work.
    """
    if threading.active_count() == 1:  # else they are waited for, as usual
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:  # nobody reads it: Python's own end says so
            sys.exit(status)
        os._exit(status)
    sys.exit(status)


def ended(status: int, told: bool) -> str:
    """How a stage ended that did not tell it itself, from its wait status; nothing where it did."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        name = signal.Signals(-code).name if -code in signal.Signals._value2member_map_ else f"signal {-code}"
        why = ": killed from outside, or for want of memory" if name == "SIGKILL" else ""
        if name == "SIGALRM":
            why = ": the oracle gave no answer within its limit, on a case that is too large for it"
        return f"its process was ended by {name}{why}; no record was written; run the same command again"
    if told or code in (2, 130, 141):
        return ""
    return (
        f"its process ended with exit status {code} before its record was written: the trial's own Python (the oracle) "
        "may have ended it by os._exit; what was printed above says more"
    )


def _log(arguments: list[str]) -> Path | None:
    """The path after `--log`, which the workflow's rules give and people do not."""
    following = dict(pairwise(arguments)).get("--log")
    return Path(following) if following else None
