"""The oracle's first run, in a child: it may loop or end its process, and the lock then says so in one line."""

import os
import select
import signal
import sys
import warnings
from pathlib import Path
from typing import Final, NoReturn

from kerneltrial.inputs import oracle
from kerneltrial.inputs.heard import HEARD
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.trial import TrialInputs, check_oracle
from kerneltrial.sandbox import libc

SECONDS: Final = 120.0
_DONE: Final = b"."


def check_apart(path: Path, inputs: TrialInputs, folder: Path, seconds: float = SECONDS) -> None:
    """Load the oracle and ask it once on the smallest case, as `check_oracle` does, within `seconds`.

    Raises
    ------
    InputProblem
        What is wrong with its answer; or it gave none in time, or ended the process.
    """
    with HEARD.aside():  # the child's descriptors are those of this block
        _check_apart(path, inputs, folder, seconds)


def _check_apart(path: Path, inputs: TrialInputs, folder: Path, seconds: float) -> None:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy's threads hold no lock that the child takes
        child = os.fork()
    if child == 0:
        _answer(writing, path, inputs, folder)
    os.close(writing)
    with open(reading, "rb") as told:
        said = _heard(told.fileno(), seconds)
        if said is None:
            os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if said is None:
        raise InputProblem(
            f"{path}: gave no answer on the smallest case within {seconds:g} s: it loops, or is too slow for a trial"
        )
    if not said.startswith(_DONE):
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with exit status {status}"
        raise InputProblem(f"{path}: ended its process {how} when it was loaded or asked; an oracle must return")
    if said != _DONE:
        raise InputProblem(said[1:].decode(errors="replace"))


def _heard(descriptor: int, seconds: float) -> bytes | None:
    """What the child says, at most 64 KiB, in one write; nothing where its end comes first, None after `seconds`."""
    ready, _, _ = select.select([descriptor], [], [], seconds)
    return os.read(descriptor, 1 << 16) if ready else None


def _answer(writing: int, path: Path, inputs: TrialInputs, folder: Path) -> NoReturn:
    libc.die_with_parent()
    said = ""
    try:
        check_oracle(oracle.load(path), inputs, folder)
    except InputProblem as problem:
        said = str(problem)
    except BaseException as fault:
        said = f"{path}: {type(fault).__name__}: {fault}"
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(writing, _DONE + said.encode()[:4000])  # a pipe takes as much in one piece
    os._exit(0)
