"""Running parts for `on_a_card.py`: each in a process group of its own with a limit, and what became of it."""

import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from card_parts import Part

ROOT = Path(__file__).resolve().parents[2]
WELL, FAILED, KILLED, LEFT_OUT = "ran", "failed", "killed", "left out"
_LEAST_S = 3.0  # what is kept of a budget for the summary


@dataclass(frozen=True)
class Outcome:
    """What became of a part; `why` is empty where it ran well."""

    part: Part
    state: str
    why: str = ""
    seconds: float = 0.0
    output: str = ""


@dataclass
class Session:
    """Where parts run, and how long all of them may take."""

    folder: Path
    trial_python: str = sys.executable
    budget_s: float = float("inf")
    side_by_side: int = 4
    began: float = field(default_factory=time.monotonic)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def left_s(self) -> float:
        return self.budget_s - (time.monotonic() - self.began) - _LEAST_S

    def end(self) -> None:
        """Kill whatever still runs."""
        for group in list(self.running.values()):
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


def run_all(parts: Sequence[Part], session: Session, ended: Callable[[Outcome], None]) -> None:
    """Run the parts in order, neighbours that time nothing beside each other; tell `ended` of each as it ends."""

    def one(part: Part) -> None:
        outcome = run(part, session)
        with session._lock:
            session.outcomes[part.name] = outcome
            ended(outcome)

    for beside, several in groupby(parts, lambda part: part.beside):
        with ThreadPoolExecutor(session.side_by_side if beside else 1) as threads:
            list(threads.map(one, several))


def run(part: Part, session: Session) -> Outcome:
    """One part, its output in `NAME.log`; never raises for what the part does."""
    why = hindrance(part, session)
    if why:
        return Outcome(part, LEFT_OUT, why)
    own = session.folder / part.name
    own.mkdir(parents=True, exist_ok=True)
    limit_s = min(part.patience_s, session.left_s())
    log, began = session.folder / f"{part.name}.log", time.monotonic()
    try:
        with log.open("wb") as words:
            # a group, not a session: whoever kills this script with its session kills these too
            child = subprocess.Popen(
                words_of(part, session), cwd=ROOT, env=environment(own), stdin=subprocess.DEVNULL, stdout=words,
                stderr=subprocess.STDOUT, process_group=0,
            )  # fmt: skip
            session.running[part.name] = child.pid
            status = waited(child, limit_s)
    except OSError as fault:
        return Outcome(part, FAILED, f"could not be started: {fault}")
    finally:
        session.running.pop(part.name, None)
    seconds, output = time.monotonic() - began, log.read_text(errors="replace")
    if status is None:
        return Outcome(part, KILLED, f"more than {limit_s:.0f} s", seconds, output)
    return Outcome(part, WELL if status == 0 else FAILED, f"status {status}" * bool(status), seconds, output)


def waited(child: subprocess.Popen[bytes], limit_s: float) -> int | None:
    """The exit status, or None where it took longer; either way nothing of its group is left."""
    try:
        return child.wait(max(0.0, limit_s))
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def hindrance(part: Part, session: Session) -> str:
    """Why a part cannot run or should not be begun, or nothing."""
    missing = [need for need in part.needs if not there(need)]
    if missing:
        return f"{' and '.join(need.removeprefix(':') for need in missing)} cannot be found"
    bad = [name for name in part.after if name not in session.outcomes or session.outcomes[name].state != WELL]
    if bad:
        return f"{bad[0]} did not run well before it"
    if part.seconds > session.left_s():
        return f"it takes about {part.seconds:.0f} s, and {max(0.0, session.left_s()):.0f} are left"
    return ""


def there(need: str) -> bool:
    """Whether a module, or a program behind a colon, can be found; torch is looked for without importing it."""
    if need.startswith(":"):
        return shutil.which(need[1:]) is not None
    return importlib.util.find_spec(need) is not None


def words_of(part: Part, session: Session) -> list[str]:
    """The command, with interpreters and folders in their places."""
    folders = {name: session.folder / name for name in part.after}
    places = {"python": sys.executable, "trial": session.trial_python, "out": session.folder / part.name, **folders}
    return [word.format(**places) for word in shlex.split(part.words)]


def environment(own: Path) -> dict[str, str]:
    """The caller's, with the package's folder on its path and the part's folder as OUT."""
    paths = filter(None, (str(ROOT / "workflow"), os.environ.get("PYTHONPATH")))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OUT": str(own), "PYTHONUNBUFFERED": "1"}


def expected(parts: Sequence[Part], side_by_side: int) -> float:
    """Seconds that the parts take by the table."""
    return sum(_group_s(beside, list(several), side_by_side) for beside, several in _groups(parts))


def _groups(parts: Sequence[Part]) -> Iterator[tuple[bool, Iterator[Part]]]:
    return groupby(parts, lambda part: part.beside)


def _group_s(beside: bool, parts: list[Part], side_by_side: int) -> float:
    whole = sum(part.seconds for part in parts)
    return max(max(part.seconds for part in parts), whole / side_by_side) if beside else whole
