"""Who may use the card: one timing alone, or any number of judgements side by side, over all runs on this machine."""

import contextlib
import fcntl
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kerneltrial.records.problem import Problem

TIMING = frozenset({"qualify", "time", "confirm"})
"""Stages that measure times: another process on the card would disturb them."""


class CardProblem(Problem):
    """The card's lock file cannot be used."""


_seconds = [0.0]


def seconds_held() -> float:
    """For how long this process has held the card so far, in seconds."""
    return _seconds[0]


@contextlib.contextmanager
def held(stage: str, folder: Path | None = None) -> Iterator[None]:
    """Wait until this stage may use the card, and hold it: alone where it measures times, else beside other judges.

    The kernel gives the lock back when this process ends, however it ends. Cards are told apart by what
    CUDA_VISIBLE_DEVICES names first; `folder` is where the lock file lies, by default the system's temporary folder.

    Raises
    ------
    CardProblem
        The lock file cannot be opened.
    """
    path = (Path(tempfile.gettempdir()) if folder is None else folder) / f"kerneltrial-card-{_card()}.lock"
    descriptor = _open(path)
    try:
        _wait(descriptor, fcntl.LOCK_EX if stage in TIMING else fcntl.LOCK_SH)
        begun = time.monotonic()
        try:
            yield
        finally:
            _seconds[0] += time.monotonic() - begun
    finally:
        os.close(descriptor)


def _wait(descriptor: int, how: int) -> None:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        print("kerneltrial: waiting for the card: another trial or stage uses it", file=sys.stderr)
        fcntl.flock(descriptor, how)


def _card() -> str:
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"
    return re.sub(r"[^A-Za-z0-9-]", "_", first)[:80]


def _open(path: Path) -> int:
    """A lock file that every user of the machine can share; it is empty, and stays."""
    with contextlib.suppress(FileNotFoundError):
        return _opened(path, os.O_RDONLY | os.O_NOFOLLOW)
    descriptor = _opened(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW)
    with contextlib.suppress(OSError):
        os.fchmod(descriptor, 0o644)
    return descriptor


def _opened(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC, 0o644)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CardProblem(f"{path}: the card's lock file cannot be opened ({error.strerror}): remove it") from error
