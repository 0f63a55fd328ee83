"""The proposer `search`: expert seeds, then the prior's order, then a model of the results so far.

It keeps no state: the space, the seed and the history give the proposal. What is about to be proposed is compiled
first, with the next few beside it, and what the compiler reports corrects the prior. Of each batch the last one is
chosen to be structurally different from what was tried: it has a value of a parameter that nothing had yet, or, where
all were tried, is furthest from everything among those that the model holds to be good.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.history import History, Tried
from kerneltrial.propose.proposer import Draft
from kerneltrial.propose.search.batch import Batch, known_from
from kerneltrial.propose.search.card import card_of
from kerneltrial.propose.search.model import Floats, Points, fit, squared_distances
from kerneltrial.propose.search.prior import Dimensions
from kerneltrial.propose.search.reasoning import Reasoning
from kerneltrial.propose.search.reports import Compile, Refined, Terms
from kerneltrial.propose.search.space import Space, read_space
from kerneltrial.records.case import Cases
from kerneltrial.records.device import Device
from kerneltrial.records.proposal import Origin, Unusable
from kerneltrial.records.reason import Reason

OPTIMISM = 0.5  # standard deviations that count in favour of a configuration
GOOD_SHARE = 0.1  # the structurally different one comes from this share of the best
ALONE = 4  # where batches are of one, each of so many is the structurally different one
COMPILED = 2  # configurations that are compiled to choose from, for each that is proposed


class Search:
    """Proposes configurations of a space. `seed` breaks ties alone; `compile` says what the compiler reports."""

    name = "search"

    def __init__(
        self,
        space: Space,
        cases: Sequence[Dimensions],
        device: Device,
        seed: int,
        compile: Compile | None = None,
    ) -> None:
        self.space = space
        self.rows = {tuple(c.values()): row for row, c in enumerate(space.configurations)}
        self.terms = Terms(space, cases, card_of(device))
        self.reasoning = Reasoning(space, cases[0], self.terms.card)
        guess = self.terms.guess(np.arange(len(space.configurations)))
        self.points = Points(_features(space), guess - guess.mean())
        self.tie_break = np.random.Generator(np.random.PCG64(seed)).permutation(len(space.configurations))
        self.compile = compile

    def propose(self, history: History, count: int) -> list[Draft | Unusable]:
        """Return up to `count` drafts, and SPACE_EXHAUSTED as the last where the space holds no more."""
        tried = self._tried(history)
        left = [row for row in range(len(self.space.configurations)) if row not in tried]
        refined = Refined(self.terms, self.points.guess)
        if self.compile is not None:  # where reports count, those of earlier builds do too
            for row_tried, earlier in tried.items():
                refined.add(row_tried, earlier.resources)
        batch = Batch(known_from(tried), refined, left, list(tried), COMPILED * count if self.compile else 0)
        drafts: list[Draft | Unusable] = []
        for slot in range(count):
            last = slot == count - 1 and count > 1
            different = last or (count == 1 and history.attempts % ALONE == ALONE - 1)
            row = self._choose(batch, different, count - slot)
            if row is None:
                drafts.append(self._exhausted(len(batch.refined.failed)))
                break
            drafts.append(self._draft(row, history, different))
        return drafts

    def _tried(self, history: History) -> dict[int, Tried]:
        found: dict[int, Tried] = {}
        for tried in history.tried:
            row = self._row(tried.origin.parameters)
            if row is not None:
                found[row] = tried
        return found

    def _row(self, parameters: dict[str, int]) -> int | None:
        names = list(self.space.file.parameters)
        return self.rows.get(tuple(parameters[n] for n in names)) if set(parameters) == set(names) else None

    def _choose(self, batch: Batch, different: bool, slots: int) -> int | None:
        """Return the next row, or None where none is left; its result is believed to be what the model says.

        `slots` are still to be filled, this one among them.
        """
        while batch.left:
            rows = np.array(batch.left, dtype=np.intp)
            mean, deviation = self._predicted(batch, rows)
            seed = self._next_seed(batch.left)
            hopeful = mean + OPTIMISM * deviation
            if seed is not None:
                place = batch.left.index(seed)
            elif different and batch.taken:
                place = self._different(rows, mean, hopeful, batch.taken)
            else:
                place = self._first(rows, hopeful)
            row = batch.left[place]
            if seed is None and batch.budget > 0 and row not in batch.refined.asked:
                best = rows[np.lexsort((self.tie_break[rows], -np.round(hopeful, 9)))].tolist()
                likely = [row, *batch.taken]  # an expert's seed among them is built in any case
                if slots > 1:  # the last slot's choice, should the others go as they look now
                    taken = [*batch.taken, *best[: slots - 1]]
                    likely.append(batch.left[self._different(rows, mean, hopeful, taken)])
                self._compile(batch, [*likely, *best])
                continue
            return batch.take(row, float(mean[place]))
        return None

    def _predicted(self, batch: Batch, rows: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of y at `rows`: the prior alone where nothing is known."""
        points = Points(self.points.features, batch.refined.guess)
        there, known = points.at(rows), batch.known
        if not known.rows:
            return there.guess, np.zeros(len(rows))
        seen = points.at(np.array(known.rows, dtype=np.intp))
        return fit(seen, np.array(known.results)).predict(there)

    def _compile(self, batch: Batch, order: Sequence[int]) -> None:
        """Compile the first of `order` that have no report, as many as may be; failures are known as failures.

        All at once: compilers work side by side, and a second wave would take as long as the first.
        """
        assert self.compile is not None
        wanted = [row for row in dict.fromkeys(order) if row not in batch.refined.asked][: batch.budget]
        batch.budget -= len(wanted)
        drafts = [self._bare(row) for row in wanted]
        for row, report in zip(wanted, self.compile(drafts), strict=True):
            batch.refined.add(row, report)
        batch.drop(row for row in wanted if row in batch.refined.failed and row in batch.left)

    def _next_seed(self, left: list[int]) -> int | None:
        seeds = (self._row(seed.parameters) for seed in self.space.file.seeds)
        return next((row for row in seeds if row in left), None)

    def _first(self, rows: NDArray[np.intp], value: Floats) -> int:
        """Return the place of the highest value; differences below 1e-9 are ties, which the seed breaks."""
        return int(np.lexsort((self.tie_break[rows], -np.round(value, 9)))[0])

    def _different(self, rows: NDArray[np.intp], mean: Floats, hopeful: Floats, taken: list[int]) -> int:
        """Return the place of the structurally different one."""
        unseen = self._unseen(rows, hopeful, taken)
        return self._furthest(rows, mean, taken) if unseen is None else unseen

    def _unseen(self, rows: NDArray[np.intp], value: Floats, taken: list[int]) -> int | None:
        """Return the best place in the largest part of the space that nothing taken lies in; None where there is none.

        A part is one value of one parameter. The prior is a guess of the space's author, and where it is wrong about
        one value, every configuration that it puts first avoids that value, so that no result could correct it.
        """
        seen = np.array(taken, dtype=np.intp)
        parts = [
            (int((column == held).sum()), name, held)
            for name in self.space.file.parameters
            for column in (self.space.table[name],)
            for held in self.space.file.parameters[name]
            if not (column[seen] == held).any() and (column[rows] == held).any()
        ]
        if not parts:
            return None
        largest = max(size for size, _, _ in parts)
        first = next((name, held) for size, name, held in parts if size == largest)
        return self._first(rows, np.where(self.space.table[first[0]][rows] == first[1], value, -np.inf))

    def _furthest(self, rows: NDArray[np.intp], mean: Floats, taken: list[int]) -> int:
        """Return the place, among those with a good mean, that is furthest from everything taken."""
        good = mean >= np.quantile(mean, 1 - GOOD_SHARE)
        features = self.points.features
        nearest = squared_distances(features[rows], features[np.array(taken, dtype=np.intp)]).min(axis=1)
        return self._first(rows, np.where(good, nearest, -1.0))

    def _draft(self, row: int, history: History, different: bool) -> Draft:
        parameters = self.space.configurations[row]
        best = history.best
        parent = best if best is not None and self._row(best.origin.parameters) is not None else None
        hypothesis, pattern, from_parent = self.reasoning.explain(parameters, parent, different)
        origin = Origin(
            hypothesis=hypothesis,
            pattern=pattern,
            parents=(parent.candidate,) if parent is not None and from_parent else (),
            parameters=dict(parameters),
        )
        return msgspec.structs.replace(self._bare(row), origin=origin)

    def _bare(self, row: int) -> Draft:
        """The draft of a configuration without its reason."""
        parameters = self.space.configurations[row]
        return Draft(
            language=self.space.file.language,
            source=self.space.source(parameters),
            plan=self.space.plan(parameters),
            origin=Origin(hypothesis="", pattern="none", parents=(), parameters=dict(parameters)),
        )

    def _exhausted(self, failed: int) -> Unusable:
        total = len(self.space.configurations)
        detail = f"all {total} configurations of {self.space.path.name} were tried"
        if failed:
            detail += f", or do not compile ({failed} of them)"
        return Unusable(reason=Reason.SPACE_EXHAUSTED, detail=detail)


def open_search(path: Path, cases: Cases, device: Device, seed: int, compile: Compile | None = None) -> Search:
    """Read the space at `path` (space.yaml) and make the proposer for the performance cases.

    Raises
    ------
    InputProblem
        Where the space is wrong, or there is no performance case to search for.
    """
    timed = [case.dimensions for case in cases.cases if case.kind == "performance"]
    if not timed:
        raise InputProblem("cases: no performance case; `search` needs one to rank by")
    return Search(read_space(path, device), timed, device, seed, compile)


def _features(space: Space) -> Floats:
    """Return (n, d): each parameter's place on its scale, logarithmic where all its values are positive."""
    columns = []
    for name, values in space.file.parameters.items():
        scale = math.log2 if min(values) > 0 else float
        low, high = scale(min(values)), scale(max(values))
        span = high - low or 1.0
        columns.append([(scale(c[name]) - low) / span for c in space.configurations])
    return np.array(columns, dtype=np.float64).T
