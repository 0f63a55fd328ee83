"""The right answers, worked out once for each case and draw, in the judge's own process.

No child ever sees them. The baseline's own error against float64 is measured once for each draw, by running the
baseline in its own runner.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from kerneltrial.devices.device import Conditions, Refused, Run, Values
from kerneltrial.inputs.calls import Call
from kerneltrial.inputs.values import generate
from kerneltrial.judge.compare import Compared, Expected, compare
from kerneltrial.judge.precision import decode
from kerneltrial.judge.setup import JudgeProblem, JudgeSetup
from kerneltrial.records.case import Case
from kerneltrial.records.qualification import BaselineError

_CACHE_BYTES: Final = 1_000_000_000


@dataclass(frozen=True)
class Drawn:
    """Inputs of one draw, what each output should be, and how many bytes that takes."""

    values: Values
    expected: tuple[Expected, ...]
    size_bytes: int


class Answers:
    """Inputs, answers and the baseline's errors by (case, draw). Cases are told apart by name.

    May be asked from several threads, one candidate in each: the baseline's runner serves one at a time.
    """

    def __init__(self, setup: JudgeSetup, cache_bytes: int = _CACHE_BYTES) -> None:
        self._setup = setup
        self._cache_bytes = cache_bytes
        self._drawn: dict[tuple[str, int], Drawn] = {}
        self._held_bytes = 0
        self._baseline: dict[tuple[str, int], dict[str, BaselineError]] = {}
        self._lock = threading.RLock()

    def drawn(self, case: Case, draw: int) -> Drawn:
        """Inputs and right outputs of a draw; raises `InputProblem` where the oracle fails."""
        key = (case.name, draw)
        with self._lock:
            if key in self._drawn:
                return self._drawn[key]
            drawn = self._draw(case, draw)
            if self._held_bytes + drawn.size_bytes <= self._cache_bytes:
                self._drawn[key] = drawn
                self._held_bytes += drawn.size_bytes
            return drawn

    def values(self, case: Case, draw: int) -> Values:
        """The inputs of a draw: those that are held, or made anew, without an answer."""
        with self._lock:
            held = self._drawn.get((case.name, draw))
        return generate(self._setup.contract, case, draw, self._setup.folder) if held is None else held.values

    def draw_ahead(self, asked: Iterable[tuple[Case, int]], over: threading.Event) -> None:
        """Work out what will be asked, until that is `over` or no more can be kept; what fails is told who asks."""
        for case, draw in asked:
            if over.is_set() or self._held_bytes >= self._cache_bytes // 2:
                return
            self.drawn(case, draw)

    def baseline(self, case: Case, draw: int) -> dict[str, BaselineError]:
        """The baseline's own error, by output; raises `JudgeProblem` where the baseline does not run through.

        What qualification measured is taken from there; else the baseline is run.
        """
        key = (case.name, draw)
        with self._lock:
            if key not in self._baseline:
                measured = self._setup.baseline_errors.get(case.name, ())
                errors = measured[draw] if draw < len(measured) else self._run_baseline(case, draw)
                self._baseline[key] = {error.output: error for error in errors}
            return self._baseline[key]

    def baseline_errors(self, asked: Iterable[tuple[Case, int]]) -> dict[str, tuple[tuple[BaselineError, ...], ...]]:
        """The baseline's errors by case and draw, for the qualification's record; `asked`: cases and their draws."""
        return {c.name: tuple(tuple(self.baseline(c, draw).values()) for draw in range(draws)) for c, draws in asked}

    def _draw(self, case: Case, draw: int) -> Drawn:
        contract = self._setup.contract
        values = generate(contract, case, draw, self._setup.folder)
        answer = self._setup.oracle.answer(contract, values, case.dimensions, case.name)
        expected = Expected.of(contract, answer)
        size = sum(v.nbytes for v in values.values()) + sum(
            e.want.nbytes + (0 if e.terms is None else e.terms.nbytes) for e in expected
        )
        return Drawn(values=values, expected=expected, size_bytes=size)

    def _run_baseline(self, case: Case, draw: int) -> tuple[BaselineError, ...]:
        setup = self._setup
        conditions = Conditions(poison="nan", checks="bounds", budget_instructions=setup.protocol.budget_instructions)
        drawn = self.drawn(case, draw)
        try:
            call = setup.baseline.call(setup.contract, case.dimensions)
            run = setup.baseline.run(call, drawn.values, conditions)
        except Refused as refused:
            raise JudgeProblem(f"the baseline does not run in case {case.name}: {refused}") from refused
        if run.findings or not run.completed:
            found = "; ".join(f"{f.reason.value}: {f.detail}" for f in run.findings) or "the call did not end"
            raise JudgeProblem(f"the baseline failed in case {case.name}, draw {draw}: {found}")
        compared = compare_all(run, call, drawn.expected, lambda _: None)
        return tuple(BaselineError(output=c.output, measure=c.measure, bound_share=c.bound_share) for c in compared)


def compare_all(
    run: Run, call: Call, expected: tuple[Expected, ...], baseline_measure: Callable[[str], float | None]
) -> tuple[Compared, ...]:
    """Compare every output of a run; `baseline_measure` gives the baseline's measure of an output by name."""
    shapes = {buffer.name: buffer.shape for buffer in call.buffers}
    return tuple(
        compare(decode(run.outputs[e.name], e.dtype, shapes[e.name]), e, baseline_measure(e.name)) for e in expected
    )
