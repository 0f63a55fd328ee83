"""`kerneltrial compare A B`: two trials side by side, so that one variable can be changed at a time."""

import argparse
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from kerneltrial.decide import amounts
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.envelope import Envelope
from kerneltrial.store import envelopes
from kerneltrial.store.canonical import canonical
from kerneltrial.store.plain import require_plain
from kerneltrial.store.printed import printed

_WIDTH = 40
_ABSENT = "absent"
_MANY = 4  # files of a folder that are told of as one
Row = tuple[str, str, str]


def run(given: argparse.Namespace, root: Path) -> int:
    """Print what came out of both, then what differs in lock and terms."""
    first, second = (_folder(name, root) for name in (given.first, given.second))
    # Trials of one name lie in different places, so that these tell them apart.
    heads = (first.name, second.name) if first.name != second.name else (given.first, given.second)
    for folder in (first, second):
        require_plain(folder, ".")
    try:
        found = list(rows(first, second))
    except (ValueError, LookupError, TypeError, AttributeError) as fault:
        raise InputProblem(
            "compare: records of these trials have a form that this kerneltrial does not write "
            f"({type(fault).__name__}: {fault}); `kerneltrial verify` says more"
        ) from fault
    print(table(("", *heads), found))
    return 0


def rows(first: Path, second: Path) -> Iterator[Row]:
    """The comparison of two results folders: a row a figure, then a row a field that differs."""
    locks, terms = (tuple(_body(folder, f"{name}.json") for folder in (first, second)) for name in ("lock", "terms"))
    asked = [term["now"]["iterations"] for term in terms]
    yield from zip(_NAMES, _figures(first, asked[0]), _figures(second, asked[1]), strict=True)
    differing = [*_of_locks(*locks), *_differences("terms", *(t["now"] for t in terms))]
    yield ("", "", "") if differing else ("lock and terms", "the same", "the same")
    yield from differing


_NAMES = (
    "outcome",
    "best",
    "attempts",
    "candidates",
    "right",
    "stopped by",
    "total cost",
    "model cost",
    "tokens in/out",
)


_UNFINISHED = "not finished"


def table(head: Row, body: list[Row]) -> str:
    """Rows as text columns; long values are cut where the two still differ, names of rows never."""
    cut = [tuple(map(printed, (name, *_cut(one, other)))) for name, one, other in [head, *body]]
    widths = [max(len(row[column]) for row in cut) for column in range(3)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cut
    )


def _cut(one: str, other: str) -> tuple[str, str]:
    """Two values in `_WIDTH` characters each, from a little before where they begin to differ."""
    if max(len(one), len(other)) <= _WIDTH:
        return one, other
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, same - _WIDTH // 2) if one != other else 0
    return _window(one, start), _window(other, start)


def _window(text: str, start: int) -> str:
    shown = f"…{text[start + 1 :]}" if start else text
    return shown if len(shown) <= _WIDTH else f"{shown[: _WIDTH - 1]}…"


def _of_locks(one: dict[str, Any], other: dict[str, Any]) -> list[Row]:
    """What differs; of two devices of other names the names alone, as nothing else of them need agree."""
    found = list(_folded(list(_differences("lock", _identity(one), _identity(other)))))
    if not any(path == "lock.device.name" for path, _, _ in found):
        return found
    return [row for row in found if not row[0].startswith("lock.device.fingerprint.")]


def _folded(rows: list[Row]) -> Iterator[Row]:
    """Rows of files of one folder that one of the two alone has, as one row where they are many: recorded replies."""

    def group(row: Row) -> tuple[str, bool, bool]:
        path, one, other = row
        return path.rpartition("/")[0] if path.startswith("lock.files.") else "", one == _ABSENT, other == _ABSENT

    counts = Counter(map(group, rows))
    told = set[tuple[str, bool, bool]]()
    for row in rows:
        key = folder, *lacks = group(row)
        if not folder or not any(lacks) or counts[key] < _MANY:
            yield row
        elif key not in told:
            told.add(key)
            one, other = (_ABSENT if lacking else f"{counts[key]} files" for lacking in lacks)
            yield f"{folder}/*", one, other


def _identity(lock: dict[str, Any]) -> dict[str, Any]:
    """A lock without what differs between any two trials, or is said twice."""
    mine = {"trial", "holdout_commitment", "asked", "contract", "cases", "model", "command", "device"}
    left = {key: value for key, value in lock.items() if key not in mine}
    asked = {key: value for key, value in lock["asked"].items() if key not in ("trial", "protocol") and key not in left}
    device = lock["device"]
    named = f"{device['name']} ({device['kind']}, {device['arch']})"
    return {**left, "asked": asked, "device": {"name": named, "fingerprint": device["fingerprint"]}}


def _differences(path: str, one: Any, other: Any) -> Iterator[Row]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from _differences(f"{path}.{key}", one.get(key, _ABSENT), other.get(key, _ABSENT))
    elif canonical(one) != canonical(other):
        yield path, _text(one), _text(other)


def _text(value: Any) -> str:
    if value in ("", [], {}):
        return "none"
    return value if isinstance(value, str) else canonical(value).decode().strip()


def _figures(folder: Path, iterations: int) -> tuple[str, ...]:
    """The values of `_NAMES` for one trial of so many iterations; what lies there of more is left over, and not of it.

    Of one that is at work still, or was stopped, it says so.
    """
    proposals, verdicts = _bodies(folder, "proposal", iterations), _bodies(folder, "validation", iterations)
    attempts = [attempt for proposal in proposals for attempt in proposal["attempts"]]
    right = sum(entry["state"] == "valid" for verdict in verdicts for entry in verdict["candidates"])
    costs = _bodies(folder, "cost", iterations)
    decision = _body(folder, "decision.json") if (folder / "decision.json").is_file() else None
    spent = decision["spent"] if decision else costs[-1]["spent"] if costs else None
    proposed = sum(attempt["state"] == "proposed" for attempt in attempts)
    return (
        decision["outcome"] if decision else _UNFINISHED,
        _best(decision),
        str(len(attempts)),
        str(proposed),
        str(right),
        decision["stop"] if decision else _UNFINISHED,
        amounts.usd(Decimal(spent["total_usd"])) if spent else _UNFINISHED,
        amounts.usd(Decimal(spent["model_usd"])) if spent else _UNFINISHED,
        f"{spent['input_tokens']:,} / {spent['output_tokens']:,}" if spent else _UNFINISHED,
    )


def _best(decision: dict[str, Any] | None) -> str:
    if decision is None:
        return _UNFINISHED
    winner = decision["winner"]
    if "geometric_mean" not in winner:
        return "none"
    measure = "counts" if winner.get("measure") == "counts" else "time"
    return f"{amounts.factor(winner['geometric_mean'])} by {measure}, iteration {winner['iteration']}"


def _bodies(folder: Path, record: str, iterations: int) -> list[dict[str, Any]]:
    names = (f"iterations/{number:04d}/{record}.json" for number in range(1, iterations + 1))
    return [_body(folder, name) for name in names if (folder / name).is_file()]


def _folder(name: str, root: Path) -> Path:
    """A trial by its name, by the path of its results, or by a folder that holds one trial."""
    for folder in (root / "results" / name, root / name):
        if (folder / "lock.json").is_file():
            return folder
    held = sorted(lock.parent for lock in (root / name).glob("results/*/lock.json"))
    if len(held) == 1:
        return held[0]
    if held:
        of = ", ".join(f"{name}/results/{one.name}" for one in held)
        raise InputProblem(f"compare: {name} holds {len(held)} trials; name one of {of}")
    bundle = "; a bundle is unpacked first" if (root / name).is_file() else ""
    raise InputProblem(
        f"compare: {name} is no trial with a lock here; name one under results/, its results, or its folder{bundle}"
    )


def _body(folder: Path, name: str) -> dict[str, Any]:
    envelope: Envelope | None = envelopes.read(folder / name)
    if envelope is None:
        raise InputProblem(f"compare: {name} of {folder.name} is missing or torn; run snakemake again")
    body: dict[str, Any] = envelope.body
    return body
