"""The one page that the lock prints: what a reviewer reads and signs before the first proposal.

It is a pure function of the lock and of one version of the terms, so that anyone who has both can make it again and see
that exactly these bytes were signed.
"""

import textwrap
from collections.abc import Iterator
from typing import Any

from kerneltrial.evidence.signatures import RECEIPT
from kerneltrial.records.lock import Lock
from kerneltrial.records.terms import Agreed
from kerneltrial.store.canonical import builtins, canonical, digest

_WIDTH = 100
_LABEL = 18


def lock_page(lock: Lock, agreed: Agreed) -> bytes:
    """The page as UTF-8 text."""
    return ("\n".join(_lines(lock, agreed)) + "\n").encode()


def _lines(lock: Lock, agreed: Agreed) -> Iterator[str]:
    yield f"kerneltrial lock page 2: trial {lock.trial}"
    yield ""
    yield from textwrap.wrap(
        "Whoever signs this page says: I saw it before the first kernel was proposed, I was not part of the trial, and "
        "this is how it will be judged. To sign, keep exactly these bytes in a file and run",
        _WIDTH,
    )
    yield f"  ssh-keygen -Y sign -n {RECEIPT} -f YOUR_PRIVATE_KEY lock-page.txt"
    yield "then hand back lock-page.txt.sig and keep this page."
    yield ""
    yield from _field("lock", digest(canonical(lock)))
    yield from _field("terms", digest(canonical(agreed)))
    yield ""
    yield "WHAT IS TRIED"
    yield from _tried(lock, agreed)
    yield ""
    yield "HOW IT IS JUDGED"
    yield from _judged(lock)
    yield ""
    yield "WHAT GO ASKS FOR"
    yield from _worth(agreed)
    yield ""
    yield "FILES (SHA-256)"
    for path, name in sorted(lock.files.items()):
        yield f"  {name}  {path}"


def _tried(lock: Lock, agreed: Agreed) -> Iterator[str]:
    yield from _field("kernel", f"{lock.contract.name}: {lock.contract.description}".rstrip(": "))
    yield from _field("device", f"{lock.device.name} ({lock.device.kind}), compiled for {lock.device.arch}")
    yield from _field("proposer", f"{lock.proposer}, in {', '.join(lock.languages)}, seed {lock.seed}")
    yield from _field("attempts", _attempts(agreed.iterations, lock.candidates_per_iteration))
    yield from _field("locked keys", _said({key: value for key, value in lock.asked.items() if key != "protocol"}))


def _attempts(iterations: int, each: int) -> str:
    """How many kernels may be tried, in words: one of one is no plural."""
    return f"{iterations} {'iteration' if iterations == 1 else 'iterations'} of {each}"


def _judged(lock: Lock) -> Iterator[str]:
    own = " (BY THE PROPOSER ITSELF: no GO is possible)" if lock.asked.get("oracle_by_proposer") else ""
    yield from _field("oracle", f"by {lock.oracle_author}{own}")
    for case in lock.cases.cases:
        yield from _field("case", f"{case.name}, {case.kind}: {_said(case.dimensions)}")
    yield from _field(
        "sealed cases", f"{lock.holdout_count} a candidate; SHA-256 of the salt {lock.holdout_commitment}"
    )
    yield from _field("tolerances", _said(builtins(lock.contract.tolerances)))
    yield from _field("protocol", _said(builtins(lock.protocol)))
    yield from _field("sandbox", _said(lock.sandbox))


def _worth(agreed: Agreed) -> Iterator[str]:
    yield from _field("policy", _said(builtins(agreed.policy)))
    yield from _field("calls a month", _said(agreed.workload.calls_per_month))
    hours = f"{agreed.workload.setup_hours} h set-up, {agreed.workload.review_hours} h review"
    yield from _field("people", f"{hours}, {agreed.workload.upkeep_hours_per_month} h upkeep a month")
    yield from _field("invocations", f"{agreed.workload.invocations_per_month} a month (0: not known)")
    yield from _field("uncertainty", _said(builtins(agreed.workload.uncertainty)))
    yield from _field("prices", _said(builtins(agreed.prices)))
    if agreed.why_example:
        yield from _field("note", f"EXAMPLE FIGURES ({agreed.why_example}): no GO is possible with these terms")


def _field(label: str, text: str) -> list[str]:
    indent = " " * _LABEL
    return textwrap.wrap(
        text, _WIDTH, initial_indent=f"{label:<{_LABEL}}", subsequent_indent=indent, break_on_hyphens=False
    )


def _said(value: Any) -> str:
    """A value of JSON types on one line, as YAML people read it."""
    if isinstance(value, dict):
        return "; ".join(f"{key} {_inner(item)}" for key, item in sorted(value.items())) or "none"
    return _inner(value)


def _inner(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{key} {_inner(item)}" for key, item in sorted(value.items())) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_inner, value)) + "]" if value else "none"
        case "":
            return "none"
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)
