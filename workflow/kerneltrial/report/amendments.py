"""Amendments: what was changed in the terms after the lock, key by key."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec

from kerneltrial.records.terms import Terms
from kerneltrial.report.texts import Say
from kerneltrial.store.canonical import builtins


def changes(terms: Terms) -> tuple[tuple[str, ...], ...]:
    """For each amendment, in order, one line a key: what it was and what it became."""
    versions = [builtins(version) for version in (terms.first, *terms.amendments)]
    return tuple(tuple(_differences("", before, after)) for before, after in pairwise(versions))


def lengths(terms: Terms) -> tuple[int, ...]:
    """The iterations of each version in turn where the amendments changed nothing else; nothing where they did."""
    first = terms.first
    if any(msgspec.structs.replace(later, iterations=first.iterations) != first for later in terms.amendments):
        return ()
    return tuple(version.iterations for version in (first, *terms.amendments))


def said_of(terms: Terms, say: Say) -> str:
    """What was not fixed in advance, as exactly as the amendments tell: a longer trial moves no threshold."""
    numbers = lengths(terms)
    if not numbers:
        return say("The terms were changed after the lock, so this verdict was not fixed in advance.")
    return say(
        "Only iterations was changed after the lock (%(numbers)s): how many kernels are tried was not fixed in "
        "advance. Thresholds, prices and workload are those of the lock.",
        numbers=" → ".join(map(str, numbers)),
    )


def _differences(path: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            yield from _differences(f"{path}.{key}" if path else key, before.get(key), after.get(key))
    elif before != after:
        yield f"{path}: {_text(before)} → {_text(after)}"


def _text(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
