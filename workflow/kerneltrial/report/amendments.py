"""Amendments: what was changed in the terms after the lock, key by key."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from kerneltrial.records.terms import Terms
from kerneltrial.store.canonical import builtins


def changes(terms: Terms) -> tuple[tuple[str, ...], ...]:
    """For each amendment, in order, one line a key: what it was and what it became."""
    versions = [builtins(version) for version in (terms.first, *terms.amendments)]
    return tuple(tuple(_differences("", before, after)) for before, after in pairwise(versions))


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
