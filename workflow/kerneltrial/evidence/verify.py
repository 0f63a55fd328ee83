"""Check a results folder from its bytes alone: rehash everything, follow every link. It changes nothing."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from kerneltrial.evidence import links
from kerneltrial.evidence.derived import derived_figures
from kerneltrial.evidence.history import (
    known_records,
    known_usage,
    lasting_measurements,
    one_lock,
    read_journal,
    whole_prize,
    whole_terms,
)
from kerneltrial.evidence.verdict import Verdict
from kerneltrial.evidence.versions import other_version_of
from kerneltrial.records.envelope import Envelope
from kerneltrial.store import envelopes
from kerneltrial.store.canonical import canonical, decode, digest
from kerneltrial.store.measurements import Entry
from kerneltrial.store.objects import Objects
from kerneltrial.store.problem import StoreProblem


def verify(folder: Path, root: Path, known_stage: Callable[[str], bool]) -> Verdict:
    """Verify the trial in `folder`, whose records name their inputs relative to `root`.

    A changed byte anywhere, a missing object, a candidate that is not the one that was proposed are each named. What
    seal and signatures say is looked at by `evidence.sealed`. Of records of another version only the bytes are
    looked at.
    """
    verdict = Verdict()
    verdict.look("bytes", ())
    records = _records(folder, root, verdict)
    verdict.other_version = other_version_of(records.values())
    lines = read_journal(folder, root, verdict)
    verdict.look("bytes", known_records(records, lines))
    verdict.look("bytes", _objects(folder, root, verdict))
    present = _measurements(folder, root, verdict)
    if verdict.other_version:
        return verdict
    for path, envelope in records.items():
        if not known_stage(envelope.stage):
            verdict.look("bytes", [f"{path}: no stage is called {envelope.stage!r}"])
    verdict.look("bytes", _linked(folder, root, records, present))
    verdict.look("bytes", lasting_measurements(records, lines, present))
    verdict.look("bytes", known_usage(folder, root, records, lines))
    verdict.look("bytes", one_lock(folder, root, records, lines))
    verdict.look("bytes", whole_terms(folder, root, records, lines))
    verdict.look("bytes", whole_prize(folder, root, records, lines))
    verdict.look("bytes", _report(root, records))
    if not records:
        verdict.note("derivation", "there is no record to follow")
        return verdict
    bodies = {path: envelopes.body_digest(envelope) for path, envelope in records.items()}
    for path, envelope in records.items():
        verdict.look("derivation", _inputs(path, envelope, bodies, root))
        verdict.look("derivation", _candidates(path, envelope, records))
    verdict.look("derivation", derived_figures(folder, records))
    verdict.look("derivation", _derived_proposals(folder, records))
    return verdict


def _relative(path: Path, root: Path) -> str:
    return str(path.relative_to(root))


def _records(folder: Path, root: Path, verdict: Verdict) -> dict[str, Envelope]:
    found: dict[str, Envelope] = {}
    problems: list[str] = []
    paths = [p for p in folder.glob("*.json") if p.name != "config.json"]
    for path in sorted([*paths, *folder.glob("iterations/*/*.json")]):
        if path.name.startswith("."):
            continue
        name, envelope = _relative(path, root), envelopes.read(path)
        if envelope is None:
            problems.append(f"{name}: torn or edited: its bytes are not those that its own digest names")
            continue
        iteration = _iteration(path.parent.name) if path.parent.parent.name == "iterations" else 0
        if iteration is None:
            problems.append(f"{name}: lies in a folder that is no iteration's; they are called 0001, 0002 and so on")
        elif iteration != envelope.iteration:
            problems.append(f"{name}: says that it belongs to iteration {envelope.iteration}")
        found[name] = envelope
        verdict.records += 1
    if not found:
        problems.append(f"{_relative(folder, root)}: holds no record of a trial")
    verdict.look("bytes", problems)
    return found


def _iteration(name: str) -> int | None:
    """The number of an iteration's folder, in the one form that a trial writes it in."""
    return int(name) if re.fullmatch(r"[0-9]{4}", name) else None


def _bytes(root: Path, name: str) -> bytes | None:
    """The bytes of a plain file under `root`; None where there is none, or the name leads out of `root`."""
    inside = PurePosixPath(name)
    if inside.is_absolute() or ".." in inside.parts:
        return None
    try:
        return (root / inside).read_bytes() if (root / inside).is_file() else None
    except OSError:  # such as a name that is longer than any file's
        return None


def _inputs(path: str, envelope: Envelope, bodies: dict[str, str], root: Path) -> Iterator[str]:
    for name, stated in envelope.made_from.inputs.items():
        if name in bodies:
            if bodies[name] != stated:
                yield f"{path}: was made from another {name} than the one that is here"
            continue
        data = _bytes(root, name)
        if data is None:
            yield f"{path}: was made from {name}, which is missing"
        elif digest(data) != stated:
            yield f"{path}: was made from other bytes of {name}; it was edited since"


def _candidates(path: str, envelope: Envelope, records: dict[str, Envelope]) -> Iterator[str]:
    for wrong in links.wrong_ids(envelope.body):
        yield f"{path}: candidate {wrong[:12]} is not the digest of its language, source and plan"
    proposal = records.get(str(Path(path).parent / "proposal.json"))
    if proposal is None or envelope.iteration == 0 or not links.candidates(envelope.body):
        return
    if links.candidates(envelope.body) != links.candidates(proposal.body):
        yield f"{path}: does not speak of the candidates that were proposed, in their order"


def _objects(folder: Path, root: Path, verdict: Verdict) -> Iterator[str]:
    store = Objects(folder / "objects")
    for name in store.names():
        verdict.objects += 1
        try:
            store.get(name)
        except StoreProblem:
            yield f"{_relative(store.path(name), root)}: a byte was changed"


def _measurements(folder: Path, root: Path, verdict: Verdict) -> set[str]:
    """Digests of all stored measurements and usage; each must be what its name promises."""
    present: set[str] = set()
    paths = [*folder.glob("measurements/*.json"), *folder.glob("usage/*/*.json")]
    for path in sorted(p for p in paths if not p.name.startswith(".")):
        verdict.measurements += 1
        data = path.read_bytes()
        present.add(digest(data))
        try:
            entry = decode(Entry, data)
            whole = canonical(entry) == data and digest(canonical(entry.key)) == path.stem
        except ValueError:
            whole = False
        if not whole:
            verdict.look("bytes", [f"{_relative(path, root)}: is not the measurement that its name promises"])
    return present


def _derived_proposals(folder: Path, records: Mapping[str, Envelope]) -> Iterator[str]:
    """Those of a model. What reads replies makes prompts too: its import takes longer than to look at a search."""
    if any(e.body.get("usage", {}).get("requests") for e in records.values() if e.stage == "propose"):
        from kerneltrial.evidence.replies import derived_proposals

        yield from derived_proposals(folder, records)


def _linked(folder: Path, root: Path, records: dict[str, Envelope], measured: set[str]) -> Iterator[str]:
    """What records name and is not here."""
    store = Objects(folder / "objects")
    for path, envelope in records.items():
        for name in sorted(links.objects(envelope.body)):
            if not store.path(name).is_file():
                yield f"{path}: object {name} is missing ({_relative(store.path(name), root)})"
        for name in sorted(links.measurements(envelope.body) - measured):
            yield f"{path}: measurement {name} is missing or was changed"


def _report(root: Path, records: dict[str, Envelope]) -> Iterator[str]:
    for path, envelope in records.items():
        if envelope.stage != "report":
            continue
        folder = f"reports/{Path(path).parent.name}"
        for name, stated in envelope.body["files"].items():
            data = _bytes(root, f"{folder}/{name}")
            if data is None or digest(data) != stated:
                yield f"{folder}/{name}: is not the file that the report was"
