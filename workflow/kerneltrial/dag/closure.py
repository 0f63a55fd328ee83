"""The digest of the code behind a stage: its module, all of this package that it imports, and their templates.

Imported Python is no rerun trigger for Snakemake, so this digest is a parameter of each rule and part of each record.
"""

import functools
import hashlib
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kerneltrial.dag.graph import STAGES

PACKAGE = "kerneltrial"
ROOT = Path(__file__).resolve().parent.parent


@functools.cache
def _imports() -> Any:
    import grimp

    with _late_interrupt():  # an exception in what it calls back is a panic of its own, with a trace
        return grimp.build_graph(PACKAGE, cache_dir=None)


@contextmanager
def _late_interrupt() -> Iterator[None]:
    """Have Ctrl-C heard at the block's end."""
    answer = signal.getsignal(signal.SIGINT)
    if answer is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, answer)
    if heard:
        raise KeyboardInterrupt


def modules(stage: str) -> set[str]:
    """Names of the modules that a stage depends on, through imports anywhere in a module, also late ones."""
    roots = [f"stages.{stage}", "stages.running", *STAGES[stage].code]
    found = {f"{PACKAGE}.{root}" for root in roots}
    return found.union(*map(_imported_by, list(found)))


@functools.cache
def _imported_by(root: str) -> frozenset[str]:
    return frozenset(_imports().find_upstream_modules(root))


@functools.cache
def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _files(module: str) -> list[Path]:
    stem = ROOT.joinpath(*module.split(".")[1:])
    if stem.is_dir():
        return [stem / "__init__.py"]
    templates = sorted(p for p in stem.parent.glob("templates/*") if p.is_file())
    return [stem.with_suffix(".py"), *templates]


@functools.cache
def code_digest(stage: str) -> str:
    """SHA-256 over the names and bytes of all files that a stage's code consists of."""
    files = sorted({path for module in modules(stage) for path in _files(module)})
    lines = [f"{path.relative_to(ROOT)} {_file_digest(path)}\n" for path in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
