"""The lock page in its two earlier forms, byte for byte: a signature under one of them still counts."""

import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

from kerneltrial.evidence.signatures import RECEIPT
from kerneltrial.records.lock import Lock
from kerneltrial.records.terms import Agreed
from kerneltrial.store.canonical import builtins, canonical, digest
from kerneltrial.store.printed import printed

Form = Literal[1, 2]
Said = Callable[[Any], str]
_WIDTH = 100
_LABEL = 18


def earlier_page(lock: Lock, agreed: Agreed, form: Form) -> bytes:
    """The page as UTF-8 text."""
    return ("\n".join(_lines(lock, agreed, form)) + "\n").encode()


def _lines(lock: Lock, agreed: Agreed, form: Form) -> Iterator[str]:
    said = partial(_said, form=form)
    yield f"kerneltrial lock page {form}: trial {lock.trial}"
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
    yield from _tried(lock, agreed, said)
    yield ""
    yield "HOW IT IS JUDGED"
    yield from _judged(lock, said)
    yield ""
    yield "WHAT GO ASKS FOR"
    yield from _worth(agreed, said)
    yield ""
    yield "FILES (SHA-256)"
    for path, name in sorted(lock.files.items()):
        yield f"  {name}  {printed(path)}"


def _tried(lock: Lock, agreed: Agreed, said: Said) -> Iterator[str]:
    yield from _field("kernel", f"{lock.contract.name}: {lock.contract.description}".rstrip(": "))
    yield from _field("device", f"{lock.device.name} ({lock.device.kind}), compiled for {lock.device.arch}")
    yield from _field("proposer", f"{lock.proposer}, in {', '.join(lock.languages)}, seed {lock.seed}")
    plural = "s" * (agreed.iterations != 1 or said("") == "")  # form 1 knew no singular
    yield from _field("attempts", f"{agreed.iterations} iteration{plural} of {lock.candidates_per_iteration}")
    yield from _field("locked keys", said({key: value for key, value in lock.asked.items() if key != "protocol"}))


def _judged(lock: Lock, said: Said) -> Iterator[str]:
    own = " (BY THE PROPOSER ITSELF: no GO is possible)" if lock.asked.get("oracle_by_proposer") else ""
    yield from _field("oracle", f"by {lock.oracle_author}{own}")
    for case in lock.cases.cases:
        warm = f"; in the L2 when a call starts: {', '.join(case.warm)}" if case.warm else ""
        yield from _field("case", f"{case.name}, {case.kind}: {said(case.dimensions)}{warm}")
    yield from _field(
        "sealed cases", f"{lock.holdout_count} a candidate; SHA-256 of the salt {lock.holdout_commitment}"
    )
    yield from _field("tolerances", said(builtins(lock.contract.tolerances)))
    yield from _field("protocol", said(builtins(lock.protocol)))
    yield from _field("sandbox", said(lock.sandbox))


def _worth(agreed: Agreed, said: Said) -> Iterator[str]:
    yield from _field("policy", said(builtins(agreed.policy)))
    yield from _field("calls a month", said(agreed.workload.calls_per_month))
    hours = f"{agreed.workload.setup_hours} h set-up, {agreed.workload.review_hours} h review"
    yield from _field("people", f"{hours}, {agreed.workload.upkeep_hours_per_month} h upkeep a month")
    yield from _field("invocations", f"{agreed.workload.invocations_per_month} a month (0: not known)")
    yield from _field("uncertainty", said(builtins(agreed.workload.uncertainty)))
    yield from _field("prices", said(builtins(agreed.prices)))
    if agreed.why_example:
        yield from _field("note", f"EXAMPLE FIGURES ({agreed.why_example}): no GO is possible with these terms")


def _field(label: str, text: str) -> list[str]:
    indent = " " * _LABEL
    lines = textwrap.wrap(
        text, _WIDTH, initial_indent=f"{label:<{_LABEL}}", subsequent_indent=indent, break_on_hyphens=False
    )
    return [printed(line) for line in lines]  # whoever reads the page on a terminal sees what he signs


def _said(value: Any, form: Form) -> str:
    """A value of JSON types on one line, as YAML people read it; form 1 left empty texts and lists empty."""
    if isinstance(value, dict):
        return "; ".join(f"{key} {_inner(item, form)}" for key, item in sorted(value.items())) or "none"
    return _inner(value, form)


def _inner(value: Any, form: Form) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{key} {_inner(item, form)}" for key, item in sorted(value.items())) + "}"
        case "" | [] | () if form > 1:
            return "none"
        case list() | tuple():
            return "[" + ", ".join(_inner(item, form) for item in value) + "]"
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)
