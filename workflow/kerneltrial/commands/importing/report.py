"""What came of imported problems, by level: how many could be imported, passed, are faster, and by how much."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kerneltrial.commands.importing.problem import Imported, NotImported
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.records.decision import Decision, Failed, Winner
from kerneltrial.store import envelopes

NAME = "imports.json"
_MINIMUM = 1.0
_RIGHT = ("correct_on_public_cases", "held_on_holdout")


@dataclass(frozen=True)
class Fate:
    """How far one problem came. `ratio`: baseline over winner, by time or by counts; 0 where nothing passed."""

    level: str
    imported: bool
    tried: bool
    ratio: float
    measure: str


def table(folder: Path) -> str:
    """A row a level; speed-ups are geometric means over those that passed, and say what they were measured by."""
    rows = fates(folder)
    levels = sorted({one.level for one in rows})
    lines = ["level            problems  imported  tried  passed  faster  speed-up of those that passed"]
    for level in [*levels, *(["all"] if len(levels) > 1 else [])]:
        lines.append(_row(level, [one for one in rows if level in (one.level, "all")]))
    return "\n".join(lines)


def _row(level: str, rows: Sequence[Fate]) -> str:
    passed = [one for one in rows if one.ratio > 0]
    faster = sum(one.ratio > _MINIMUM for one in passed)
    words = []
    for measure in sorted({one.measure for one in passed}):
        ratios = [one.ratio for one in passed if one.measure == measure]
        words.append(f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} x by {measure}")
    many, there, tried = len(rows), sum(one.imported for one in rows), sum(one.tried for one in rows)
    return f"{level:16s} {many:8d}  {there:8d}  {tried:5d}  {len(passed):6d}  {faster:6d}  {', '.join(words) or '-'}"


def fates(folder: Path) -> list[Fate]:
    """Every problem that was imported into `folder`, or could not be; raises `InputProblem` where none was."""
    path = folder / NAME
    if not path.is_file():
        raise InputProblem(f"{path} is missing; `kerneltrial import torch FILE --out {folder.name}` makes it")
    return [_fate(folder, one) for one in listed(path)]


def listed(path: Path) -> list[Imported | NotImported]:
    """What `imports.json` says; raises `InputProblem` where it is something else."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Imported | NotImported])
    except (msgspec.MsgspecError, RecursionError) as fault:
        raise InputProblem(f"{path}: is no list of imports ({fault}); move it away, and import again") from None


def _fate(folder: Path, one: Imported | NotImported) -> Fate:
    if isinstance(one, NotImported):
        return Fate(one.level, False, False, 0.0, "")
    path = folder / one.name / "results" / one.name / "decision.json"
    if not path.is_file():
        return Fate(one.level, True, False, 0.0, "")
    decision = envelopes.body(Decision, path.read_bytes(), str(path))
    wrong = any(isinstance(rule, Failed) and rule.rule in _RIGHT for rule in decision.rules)  # at the confirmation
    if wrong or not isinstance(decision.winner, Winner):
        return Fate(one.level, True, True, 0.0, "")
    return Fate(one.level, True, True, decision.winner.geometric_mean, decision.winner.measure)
