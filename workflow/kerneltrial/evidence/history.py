"""What the journal and the ledgers say of a trial's history, against the records that are here."""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from kerneltrial.evidence import links
from kerneltrial.evidence.verdict import Verdict
from kerneltrial.inputs.holdout import commitment
from kerneltrial.records.envelope import Envelope
from kerneltrial.records.lock import Lock
from kerneltrial.records.prize import Prize
from kerneltrial.records.record import Record
from kerneltrial.records.terms import Agreed
from kerneltrial.store import envelopes, journal, ledger
from kerneltrial.store.canonical import builtins, canonical, decode, digest
from kerneltrial.store.journal import Line
from kerneltrial.store.measurements import Entry
from kerneltrial.store.problem import StoreProblem

Lines = Mapping[tuple[str, int], list[Line]]
Records = Mapping[str, Envelope]


def read_journal(folder: Path, root: Path, verdict: Verdict) -> Lines:
    """All lines by stage and iteration; a broken chain is a problem."""
    found: dict[tuple[str, int], list[Line]] = {}
    for path in sorted(p for p in folder.glob("journal/*.jsonl") if not p.name.startswith(".")):
        try:
            lines = journal.read(path)
        except StoreProblem as error:
            verdict.look("bytes", [str(error).replace(f"{root}/", "")])
            continue
        verdict.journal_lines += len(lines)
        for line in lines:
            iteration = line.event.get("iteration")
            number = iteration if isinstance(iteration, int) else -1
            found.setdefault((str(line.event.get("stage")), number), []).append(line)
    return found


def known_records(records: Records, lines: Lines) -> Iterator[str]:
    """A record that the journal never saw being made."""
    for path, envelope in records.items():
        made = lines.get((envelope.stage, envelope.iteration), [])
        if envelope.sha256 not in {line.event.get("record") for line in made}:
            yield f"{path}: the journal does not know of it as it is here: it was edited, or brought from elsewhere"


def known_usage(folder: Path, root: Path, records: Records, lines: Lines) -> Iterator[str]:
    """Usage entries that are missing, or say other than what the journal does."""
    for path, envelope in records.items():
        key = {"usage": envelope.stage, "iteration": envelope.iteration}
        key["made_from"] = digest(canonical(envelope.made_from))
        name = f"{envelope.stage}-{envelope.iteration:04d}"
        if not (folder / "usage" / name / f"{digest(canonical(key))}.json").is_file():
            yield f"{path}: its usage entry under {_short(folder / 'usage' / name, root)} is missing"
    for entry in sorted(p for p in folder.glob("usage/*/*.json") if not p.name.startswith(".")):
        stage, _, number = entry.parent.name.rpartition("-")
        job = (stage, int(number) if re.fullmatch(r"[0-9]{4}", number) else -1)
        told = [line.event.get("usage") for line in lines.get(job, [])]
        if _value(entry) not in told:
            yield f"{_short(entry, root)}: the journal knows of no such usage"


def lasting_measurements(records: Records, lines: Lines, present: Collection[str]) -> Iterator[str]:
    """Measurements that a record rested on when it was made, and that are here no more.

    They are written once. Who removes one draws anew, until the figure pleases. Those that a record names now are
    looked for there.
    """
    named = {name for envelope in records.values() for name in links.measurements(envelope.body)}
    told = set[str]()
    for (stage, iteration), made in lines.items():
        for name in (name for line in made for name in line.event.get("measurements", ())):
            if name not in present and name not in named | told:
                told.add(name)
                where = f"{stage}-{iteration:04d}" if iteration else stage
                yield (
                    f"journal/{where}.jsonl: knows of measurement {name}, which is gone: it was removed or changed, "
                    "and what stands in its place is not what was measured first"
                )


def one_lock(folder: Path, root: Path, records: Records, lines: Lines) -> Iterator[str]:
    """A trial has one lock from its beginning to its end, and the salt is the one that it committed to."""
    path = _short(folder / "lock.json", root)
    envelope = records.get(path)
    if envelope is None:
        yield f"{_short(folder, root)}: has no lock"
        return
    if _versions(folder, "lock", Lock) != [canonical(envelope.body)]:
        yield f"{path}: is not the one lock of the ledger"
    if {line.event.get("body") for line in lines.get(("lock", 0), [])} - {envelopes.body_digest(envelope)}:
        yield f"{path}: the journal knows of another lock: the trial was locked again in the same folder"
    salt = folder / "private" / "holdout-salt"
    if salt.is_file() and commitment(salt.read_bytes()) != envelope.body["holdout_commitment"]:
        yield f"{_short(salt, root)}: is not the salt that the lock committed to"


def whole_terms(folder: Path, root: Path, records: Records, lines: Lines) -> Iterator[str]:
    """Every version of the terms that the journal saw is in the ledger and in the record, in the same order."""
    path = _short(folder / "terms.json", root)
    versions = _versions(folder, "terms", Agreed)
    seen: list[object] = []
    for line in lines.get(("terms", 0), []):
        if not seen or seen[-1] != line.event.get("config"):
            seen.append(line.event.get("config"))
    if seen != [digest(version) for version in versions]:
        yield f"{path}: the journal knows of other terms than the ledger: an amendment was removed or changed"
    envelope = records.get(path)
    if envelope is not None:
        body = envelope.body
        if [canonical(v) for v in [body["first"], *body["amendments"]]] != versions:
            yield f"{path}: does not hold the versions of the ledger"


def whole_prize(folder: Path, root: Path, records: Records, lines: Lines) -> Iterator[str]:
    """Every prize that the journal saw is in the ledger, and the one that is here came last."""
    path = _short(folder / "ledger" / "prize.jsonl", root)
    versions = _versions(folder, "prize", Prize)
    envelope = records.get(_short(folder / "prize.json", root))
    if envelope is not None and versions[-1:] != [canonical(envelope.body)]:
        yield f"{path}: its last version is not the prize that is here"
    if {line.event.get("body") for line in lines.get(("prize", 0), [])} - {digest(version) for version in versions}:
        yield f"{path}: the journal knows of a prize that is not in it"


def _versions(folder: Path, name: str, type_: type[Record]) -> list[bytes]:
    try:
        return [canonical(builtins(v)) for v in ledger.versions(folder / "ledger" / f"{name}.jsonl", type_)]
    except StoreProblem:
        return []


def _value(path: Path) -> object:
    try:
        return decode(Entry, path.read_bytes()).value
    except ValueError:
        return None


def _short(path: Path, root: Path) -> str:
    return str(path.relative_to(root))
