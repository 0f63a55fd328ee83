"""The effective config of a run, held against the lock, the terms and every record that was made from it.

`verify` and `seal` read results/TRIAL/config.json to know which files and keys a trial was about. What it says has to
be what the records say, else it could be edited without a trace.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kerneltrial.dag import graph
from kerneltrial.inputs.cases import read_cases
from kerneltrial.inputs.config import Config, sources
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.records.envelope import Envelope
from kerneltrial.records.problem import Problem
from kerneltrial.records.record import Record
from kerneltrial.store import envelopes
from kerneltrial.store.canonical import builtins, canonical


class _Found(NamedTuple):
    """A record of the trial, and which stage made it."""

    stage: str
    path: str
    envelope: Envelope


def differences(config: Config, root: Path) -> Iterator[str]:
    """Each key, and each file, that the config names and the records do not; one line each.

    The lock's record knows all locked keys and the files, that of the terms iterations, policy, prices and workload,
    the other ones what they read themselves. A record that is not there, or is torn, is named elsewhere.
    """
    where = f"{graph.results(config.trial)}/config.json"
    written = _bytes(root / where)
    if written and canonical(json.loads(written)) != written:
        yield f"{where}: has other bytes than the run wrote; it was edited"
    lock = envelopes.read(root / graph.record_path(config.trial, "lock"))
    if lock is None or not all(isinstance(lock.body.get(key), dict) for key in ("asked", "files")):
        return
    records = list(_records(config, root))
    yield from (f"{where}: {line}" for line in _keys(config, records, lock))
    try:
        groups = sources(config, root)
    except (Problem, OSError, ValueError) as fault:
        yield f"{where}: the files that it names are not those that were locked ({fault})"
        return
    yield from dict.fromkeys(f"{where}: {line}" for line in _files(config, records, groups, lock))
    yield from _contents(config, root, lock)


def _bytes(path: Path) -> bytes:
    """What `verify` and `seal` read the config from; nothing where the trial is looked at before it ran."""
    return path.read_bytes() if path.is_file() else b""


def _records(config: Config, root: Path) -> Iterator[_Found]:
    """All that are there."""
    for stage, iteration in graph.jobs(config.iterations):
        path = graph.record_path(config.trial, stage, iteration)
        envelope = envelopes.read(root / path)
        if envelope is not None:
            yield _Found(stage, path, envelope)


def _keys(config: Config, records: Sequence[_Found], lock: Envelope) -> Iterator[str]:
    told = set[str]()
    for stage, path, envelope in records:
        now, then = _flat(config.slice(graph.STAGES[stage].reads)), _flat(envelope.made_from.config)
        for key in _other(now, then):
            if key not in told:
                told.add(key)
                yield f"{key} is {_short(now.get(key))}, and {path} was made with {_short(then.get(key))}"
    now, asked = _flat(config.slice(graph.LOCKED_KEYS)), _flat(lock.body["asked"])
    for key in _other(now, asked):
        if key not in told:
            yield f"{key} is {_short(now.get(key))}, and the lock asks for {_short(asked.get(key))}"


def _files(
    config: Config, records: Sequence[_Found], groups: Mapping[str, tuple[str, ...]], lock: Envelope
) -> Iterator[str]:
    """Files that are named as something else than they were: a baseline as its second opinion, say."""
    known = set(lock.body["files"])
    named = {path: group for group, paths in groups.items() for path in paths}
    for path in sorted(set(named) - known):
        yield f"{named[path]}: names {path}, which was not locked"
    for path in sorted(known - set(named)):
        yield f"does not name {path}, which was locked"
    for stage, path, envelope in records:
        now = {file for group in graph.STAGES[stage].sources for file in groups.get(group, ())} & known
        for file in sorted(now ^ (known & set(envelope.made_from.inputs))):
            yield f"gives {file} another part than it had when {path} was made"


def _contents(config: Config, root: Path, lock: Envelope) -> Iterator[str]:
    """The lock holds contract and cases as values too: what is compiled again is compiled by those."""
    readers: tuple[tuple[str, str, Callable[[Path], Record]], ...] = (
        ("contract", config.contract, read_contract),
        ("cases", config.cases, read_cases),
    )
    for name, path, reader in readers:
        try:
            there = canonical(builtins(reader(root / path)))
        except (Problem, OSError, ValueError) as fault:
            yield f"{path}: cannot be read ({fault})"
            continue
        if there != canonical(lock.body.get(name)):
            yield f"{graph.record_path(config.trial, 'lock')}: its {name} is not that of {path}"


def _flat(keys: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """By dotted keys, so that a difference is told by its own key alone."""
    found: dict[str, Any] = {}
    for key, value in builtins(dict(keys)).items():
        inner = _flat(value, f"{before}{key}.") if isinstance(value, dict) and value else {f"{before}{key}": value}
        found |= inner
    return found


def _other(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """Keys with another value."""
    return [key for key in sorted({*now, *then}) if canonical(now.get(key)) != canonical(then.get(key))]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
