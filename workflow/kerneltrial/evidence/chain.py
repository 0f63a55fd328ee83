"""The journal's fragments merged into one chain: at each decision and at the seal the new lines are added.

A fragment is written by its own stage, so that stages may run side by side; the chain orders all of them once. It holds
digests of the fragments' lines, and each of its own lines the digest of the one before.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from kerneltrial.records.record import Digest, Positive
from kerneltrial.records.seal import Head
from kerneltrial.store import journal
from kerneltrial.store.canonical import canonical, digest
from kerneltrial.store.files import write_atomic
from kerneltrial.store.journal import Line
from kerneltrial.store.lines import Chained, chained
from kerneltrial.store.problem import StoreProblem


class Link(Chained):
    """The `number`th line of a fragment, counted from 1."""

    fragment: str
    number: Positive
    line: Digest


def fragments(results: Path) -> dict[str, list[Line]]:
    """All lines of all fragments by name; raises StoreProblem where one is broken."""
    paths = sorted(p for p in results.glob("journal/*.jsonl") if not p.name.startswith("."))
    return {path.stem: journal.read(path) for path in paths}


def heads(found: Mapping[str, list[Line]]) -> dict[str, Head]:
    """How far each fragment has come."""
    return {name: Head(lines=len(lines), digest=digest(canonical(lines[-1]))) for name, lines in found.items() if lines}


def read(results: Path) -> list[Link]:
    """The chain so far; raises StoreProblem where a link does not follow from the one before."""
    path = results / "chain.jsonl"
    try:
        return chained(path.read_bytes() if path.is_file() else b"", Link)
    except ValueError as error:
        raise StoreProblem(f"{path}: is not the chain that was written ({error})") from error


def extend(results: Path) -> str:
    """Add the lines that are not in the chain yet, in order of time, and return the digest of its last link."""
    links, found = read(results), fragments(results)
    known = _lengths(links)
    previous = digest(canonical(links[-1])) if links else ""
    fresh = sorted(one for name, lines in found.items() for one in _timed(name, lines) if one[2] > known.get(name, 0))
    for _, name, number, line in fresh:
        links.append(Link(previous=previous, fragment=name, number=number, line=line))
        previous = digest(canonical(links[-1]))
    if fresh:
        write_atomic(results / "chain.jsonl", b"".join(canonical(link) for link in links))
    return previous


def differences(links: list[Link], found: Mapping[str, list[Line]], whole: bool) -> Iterator[str]:
    """What chain and fragments do not agree on; `whole` asks that every line be in the chain, as after the seal."""
    known = dict[str, int]()
    for position, link in enumerate(links, start=1):
        known[link.fragment] = known.get(link.fragment, 0) + 1
        lines = found.get(link.fragment, [])
        if link.number != known[link.fragment]:
            yield f"chain.jsonl: line {position} is line {link.number} of {link.fragment}, out of its order"
        elif link.number > len(lines) or digest(canonical(lines[link.number - 1])) != link.line:
            yield f"journal/{link.fragment}.jsonl: line {link.number} is missing, or is not what the chain holds"
    for name, lines in found.items():
        if whole and len(lines) > known.get(name, 0):
            yield f"journal/{name}.jsonl: {len(lines) - known.get(name, 0)} lines are not in the chain"


def _lengths(links: list[Link]) -> dict[str, int]:
    known = dict[str, int]()
    for link in links:
        known[link.fragment] = max(known.get(link.fragment, 0), link.number)
    return known


def _timed(name: str, lines: list[Line]) -> Iterator[tuple[str, str, int, str]]:
    """(time, fragment, number, digest); a clock that was set back does not reorder a fragment."""
    latest = ""
    for number, line in enumerate(lines, start=1):
        usage = line.event.get("usage")
        told = usage.get("finished_at") if isinstance(usage, dict) else line.event.get("at")
        latest = max(latest, str(told or ""))
        yield latest, name, number, digest(canonical(line))
