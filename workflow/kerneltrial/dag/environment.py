"""Whether a decision still holds here: it speaks of the card, driver and toolchain of its lock, and of no others."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kerneltrial.dag import graph, locked
from kerneltrial.devices import opening
from kerneltrial.devices.device import DeviceProblem
from kerneltrial.inputs.toolchain import toolchain
from kerneltrial.records.device import changes
from kerneltrial.records.lock import Lock
from kerneltrial.store.printed import printed

_NAMED = 3  # distributions that are named where more differ


@dataclass(frozen=True)
class Environment:
    """How the environment of a lock and this one compare; `line` says it to a person."""

    state: Literal["same", "expired", "not_compared"]
    line: str


def compared(lock: Lock) -> Environment:
    """Compare the lock's card and toolchain with what is here; makes no context on the card.

    A trial on `cpu` counts, and counts do not depend on the host, so there only the toolchain is compared.
    """
    differ = _toolchain(lock)
    named = f"{lock.device.name} ({lock.device.arch}{_driver(lock)})"
    if lock.device.kind == "cuda":
        try:
            differ += changes(lock.device, opening.detect("cuda"))
        except DeviceProblem as problem:
            why = str(problem).removeprefix("cuda: ").partition("; set `device")[0]  # no advice: nobody runs it here
            line = f"the decision holds for {named} and was not compared with a card here: {why}"
            return Environment("not_compared", "; ".join([line, *differ]))
    if differ:
        line = f"the decision has expired here, it holds for {named} as it was locked: {'; '.join(differ)}"
        return Environment("expired", f"{line}; start a new trial: `kerneltrial lock --new`")
    return Environment("same", f"the decision holds for {named}, as it is here")


def say_where_expired(trial: str, root: Path) -> None:
    """One line on standard error where the trial has a decision, and it has expired here."""
    lock = locked.held(trial, root)
    if lock is None or not (root / graph.record_path(trial, "decide")).is_file():
        return
    environment = compared(lock)
    if environment.state == "expired":
        print(f"kerneltrial: {printed(environment.line)}", file=sys.stderr)


def _toolchain(lock: Lock) -> tuple[str, ...]:
    """What of the toolchain differs: a few by name, since on another machine nearly all of it does."""
    now = toolchain()
    differ = tuple(
        f"{name} is {now.get(name, 'absent')} here, {lock.toolchain.get(name, 'absent')} in the lock"
        for name in sorted({*now, *lock.toolchain})
        if now.get(name) != lock.toolchain.get(name)
    )
    more = len(differ) - _NAMED
    return differ if more <= 1 else (*differ[:_NAMED], f"{more} more of the toolchain are others than in the lock")


def _driver(lock: Lock) -> str:
    driver = lock.device.fingerprint.get("driver", "")
    return f", driver {driver}" if driver else ""
