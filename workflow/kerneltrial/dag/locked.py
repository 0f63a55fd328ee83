"""A lock holds: what it names may not change under a running trial."""

from pathlib import Path

from kerneltrial.dag import graph
from kerneltrial.inputs.config import Config, sources
from kerneltrial.inputs.toolchain import toolchain
from kerneltrial.records.lock import Lock
from kerneltrial.store import ledger
from kerneltrial.store.canonical import builtins, canonical, digest
from kerneltrial.store.problem import StoreProblem
from kerneltrial.store.signed import is_sealed


def held(trial: str, root: Path) -> Lock | None:
    """The lock of a results folder, or None where there is none yet."""
    versions = ledger.versions(root / graph.ledger_path(trial, "lock"), Lock)
    return versions[-1] if versions else None


def sealed(config: Config, root: Path) -> bool:
    """Whether the trial is over; raise StoreProblem where the config asks for another one than was sealed."""
    results = root / graph.results(config.trial)
    if not is_sealed(results):
        return False
    effective = results / "config.json"
    if effective.is_file() and effective.read_bytes() != canonical(builtins(config)):
        raise StoreProblem(
            f"{graph.results(config.trial)} is sealed, its salt is revealed, and the config was changed since; "
            "undo that, or start a new trial: `kerneltrial lock --new` sets the old one aside"
        )
    return True


def problem(config: Config, root: Path) -> str | None:
    """One line that says what differs from the lock and how to start a new trial, or None."""
    lock = held(config.trial, root)
    if lock is None:
        return None
    differs = _difference(lock, config, root)
    if differs is None:
        return None
    return (
        f"{graph.results(config.trial)} is locked and {differs}; undo that, or start a new trial: "
        f"`kerneltrial lock --new` sets the old one aside"
    )


def _difference(lock: Lock, config: Config, root: Path) -> str | None:
    asked = builtins(config.slice(graph.LOCKED_KEYS))
    for key in sorted({*asked, *lock.asked}):
        if canonical(asked.get(key)) != canonical(lock.asked.get(key)):
            return f"config key {key} was changed from {lock.asked.get(key)!r} to {asked.get(key)!r}"
    files = {path for paths in sources(config, root).values() for path in paths}
    for path in sorted(files | set(lock.files)):
        if path not in lock.files:
            return f"{path} is new: it was not part of the trial"
        if not (root / path).is_file():
            return f"{path} is missing"
        if path not in files:
            return f"{path} is no longer named by the config"
        if digest((root / path).read_bytes()) != lock.files[path]:
            return f"{path} was edited"
    now = toolchain()
    for name in sorted({*now, *lock.toolchain}):
        if now.get(name) != lock.toolchain.get(name):
            return f"{name} is {now.get(name, 'absent')} here, {lock.toolchain.get(name, 'absent')} in the lock"
    return None
