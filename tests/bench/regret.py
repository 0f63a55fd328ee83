"""How close a proposer comes to the best of a measured space in so many iterations: search, random draws and plain TPE.

Regret is the best latency found over the best in the table, less one; latencies are geometric means over the cases.
Every reading gets noise of its own (a factor with a standard deviation of 1 %), since no trial reads a table; what was
found is then looked up without noise. A seed draws the noise, breaks the search's ties, and is the sampler's own.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from space_tables import Table

from kerneltrial.propose.history import Failed, Fate, History, Measured, NoResources, Resources, Tried
from kerneltrial.propose.proposer import Draft, candidate_of
from kerneltrial.propose.search.reports import Compiles, DoesNot, Report
from kerneltrial.propose.search.search import Search
from kerneltrial.propose.search.space import Space, read_space
from kerneltrial.records.device import Device
from kerneltrial.records.reason import Reason

ROOT = Path(__file__).resolve().parents[2]
KEPT_SPACES = ROOT / "tests" / "tables" / "spaces"
CARD = Device(kind="cuda", arch="sm_90a", name="H200", fingerprint={"multiprocessors": "132"})
NOISE = 0.01
Key = tuple[int, ...]
Course = list[float]  # the true latency of the best by its reading, after each iteration


@dataclass(frozen=True)
class Measurement:
    """A space with its table: what is true, and what a reading of it gives."""

    space: Space
    table: Table
    truth: dict[Key, float]

    @property
    def best(self) -> float:
        return min(self.truth.values())

    def regret(self, us: float) -> float:
        """In percent."""
        return 100 * (us / self.best - 1)


def opened(table: Table) -> Measurement:
    """The table with the space that was measured: the shipped one, or what is kept of it where that changed since."""
    kept, shipped = (folder / table.problem / "space.yaml" for folder in (KEPT_SPACES, ROOT / "kernels"))
    return Measurement(read_space(kept if kept.is_file() else shipped), table, table.latencies())


class Readings:
    """Noisy readings, and the course of the best by them."""

    def __init__(self, measured: Measurement, seed: int) -> None:
        self._truth, self._random = measured.truth, random.Random(seed)
        self._best = (math.inf, math.inf)

    def read(self, key: Key) -> float | None:
        """Microseconds, or None where the configuration is wrong."""
        if key not in self._truth:
            return None
        us = self._truth[key] * math.exp(self._random.gauss(0.0, NOISE))
        self._best = min(self._best, (us, self._truth[key]))
        return us

    @property
    def found(self) -> float:
        return self._best[1]


def search(
    measured: Measurement, seed: int, iterations: int, count: int, *, seeds: bool = True, reports: bool = True
) -> Course:
    """The shipped search; without the experts' seeds, or without the compiler's reports, where that is asked."""
    space = measured.space
    if not seeds:
        space = replace(space, file=msgspec.structs.replace(space.file, seeds=()))
    rows = measured.table.reports()

    def compiled(drafts: Sequence[Draft]) -> list[Report]:
        found = (rows[tuple(draft.origin.parameters.values())] for draft in drafts)
        return [
            DoesNot(reason=Reason.DOES_NOT_COMPILE, detail=row.wrong)
            if row.wrong.startswith("does not compile")
            else Compiles(registers=row.registers, shared_bytes=row.shared_bytes, spilled_bytes=row.spilled_bytes)
            for row in found
        ]

    cases = [dict(case) for case in measured.table.cases]
    proposer = Search(space, cases, CARD, seed, compiled if reports else None)
    readings, history, course = Readings(measured, seed), History(0, 0, ()), []
    for number in range(1, iterations + 1):
        drafts = [draft for draft in proposer.propose(history, count) if isinstance(draft, Draft)]
        tried = []
        for draft in drafts:
            key = tuple(draft.origin.parameters.values())
            row = rows[key]
            resources = Resources(
                registers=row.registers, shared_bytes=row.shared_bytes, spilled_bytes=row.spilled_bytes
            )
            tried.append(
                Tried(
                    iteration=number,
                    candidate=candidate_of(draft).id,
                    origin=draft.origin,
                    resources=resources if reports else NoResources(),
                    fate=_fate(readings.read(key)),
                )
            )
        history = History(number, history.attempts + len(drafts), (*history.tried, *tried))
        course.append(readings.found)
    return course


def _fate(us: float | None) -> Fate:
    if us is None:
        return Failed(stage="validate", reason=Reason.WRONG_VALUES, detail="wrong in the table")
    return Measured(ratio=1.0 / us)


def chance(measured: Measurement, seed: int, iterations: int, count: int) -> Course:
    """As many valid configurations, drawn evenly."""
    keys = [row.parameters for row in measured.table.rows]
    readings, course = Readings(measured, seed), []
    drawn = random.Random(f"draw {seed}").sample(keys, iterations * count)
    for number in range(iterations):
        for key in drawn[number * count : (number + 1) * count]:
            readings.read(key)
        course.append(readings.found)
    return course


def tpe(measured: Measurement, seed: int, iterations: int, count: int) -> Course:
    """Optuna's TPE as it comes, in batches with the constant liar; each parameter is a place among its values.

    What breaks a constraint or was asked before costs it no attempt: it is told so and asks again.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, constant_liar=True))
    values = measured.space.file.parameters
    valid = {row.parameters for row in measured.table.rows}
    readings, course, seen = Readings(measured, seed), [], set[Key]()
    failed = optuna.trial.TrialState.FAIL
    for _ in range(iterations):
        batch: list[tuple[Any, Key]] = []
        while len(batch) < count:
            trial = study.ask()
            key = tuple(held[trial.suggest_int(name, 0, len(held) - 1)] for name, held in values.items())
            if key in valid and key not in seen:
                seen.add(key)
                batch.append((trial, key))
            else:
                study.tell(trial, state=failed)
        for trial, key in batch:
            us = readings.read(key)
            if us is None:
                study.tell(trial, state=failed)
            else:
                study.tell(trial, math.log(us))
        course.append(readings.found)
    return course


PROPOSERS: dict[str, Callable[[Measurement, int, int, int], Course]] = {
    "search": search,
    "search, no reports": lambda m, seed, n, count: search(m, seed, n, count, reports=False),
    "search, no seeds": lambda m, seed, n, count: search(m, seed, n, count, seeds=False),
    "search, neither": lambda m, seed, n, count: search(m, seed, n, count, seeds=False, reports=False),
    "plain TPE": tpe,
    "random": chance,
}
