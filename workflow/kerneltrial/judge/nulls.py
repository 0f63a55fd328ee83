"""Null candidates: wrong answers that any case worth its name must refuse."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrial.inputs.dtypes import widen
from kerneltrial.judge.answers import Answers, Drawn
from kerneltrial.judge.compare import Expected, compare
from kerneltrial.judge.precision import TF32_BITS, is_float, lower_precision, rounded, to_significand
from kerneltrial.judge.setup import JudgeSetup
from kerneltrial.records.case import Case
from kerneltrial.records.contract import Array

ZEROS = "zeros"
MEAN = "the mean of the right answer"
OTHER_CASE = "the output of another case"
OTHER_DRAW = "the output of another draw, moved by one element"
LOWER = "the right answer in the next lower precision"
TF32 = "the answer for inputs rounded to TF32"


@dataclass(frozen=True)
class Null:
    """A wrong answer for one output of one draw; `error` is its largest distance from the right one."""

    name: str
    output: str
    refused: bool
    error: float


class Nulls:
    """Makes and tries null candidates. Each is wrong in one output and right in all others."""

    def __init__(self, setup: JudgeSetup, answers: Answers, draws: int) -> None:
        self._setup = setup
        self._answers = answers
        self._draws = draws

    def tried(self, case: Case, draw: int) -> Iterator[Null]:
        """Every null candidate on one draw; nothing where all inputs are zero, since then zero is the right answer."""
        drawn = self._answers.drawn(case, draw)
        if not any(np.any(values) for values in drawn.values.values()):
            return
        measures = self._answers.baseline(case, draw)
        rounded_inputs = self._with_tf32_inputs(case, drawn)
        for expected in drawn.expected:
            wrong = dict(self._wrong(case, draw, drawn, expected))
            if expected.name in rounded_inputs:
                wrong[TF32] = rounded_inputs[expected.name]
            for name, values in wrong.items():
                held = rounded(values, expected.dtype) if is_float(expected.dtype) else values
                compared = compare(held, expected, measures[expected.name].measure)
                with np.errstate(invalid="ignore"):
                    distance = np.abs(held.astype(np.float64) - expected.want.astype(np.float64))
                yield Null(
                    name=name if len(drawn.expected) == 1 else f"{expected.name}: {name}",
                    output=expected.name,
                    refused=compared.finding is not None,
                    error=float(np.max(distance[np.isfinite(distance)], initial=0.0)),
                )

    def _wrong(self, case: Case, draw: int, drawn: Drawn, expected: Expected) -> Iterator[tuple[str, NDArray[Any]]]:
        want = expected.want
        yield ZEROS, np.zeros_like(want)
        if want.size > 1:
            yield MEAN, _mean(want)
        yield from self._copies(drawn, expected)
        yield self._elsewhere(case, draw, expected)
        if is_float(expected.dtype):
            yield LOWER, lower_precision(want.astype(np.float64), expected.dtype)

    def _copies(self, drawn: Drawn, expected: Expected) -> Iterator[tuple[str, NDArray[Any]]]:
        for array in self._given():
            values = drawn.values[array.name]
            if array.dtype == expected.dtype and values.shape == expected.want.shape:
                yield f"a copy of {array.name}", widen(values, array.dtype)

    def _elsewhere(self, case: Case, draw: int, expected: Expected) -> tuple[str, NDArray[Any]]:
        for other in self._setup.cases.cases:
            if other.name != case.name and other.dimensions == case.dimensions:
                return OTHER_CASE, _output(self._answers.drawn(other, draw), expected.name)
        values = _output(self._answers.drawn(case, (draw + 1) % self._draws), expected.name)
        return OTHER_DRAW, np.roll(values.reshape(-1), 1).reshape(values.shape)

    def _with_tf32_inputs(self, case: Case, drawn: Drawn) -> dict[str, NDArray[Any]]:
        """Float32 outputs as they come out where every float32 input has lost what TF32 does not hold."""
        if self._setup.contract.tf32 or not any(a.dtype == "float32" for a in self._given()):
            return {}
        inputs = dict(drawn.values)
        for array in self._given():
            if array.dtype == "float32":
                exact = inputs[array.name].astype(np.float64)
                inputs[array.name] = to_significand(exact, TF32_BITS).astype(np.float32)
        answer = self._setup.oracle.answer(self._setup.contract, inputs, case.dimensions, case.name)
        return {e.name: answer.outputs[e.name] for e in drawn.expected if e.dtype == "float32"}

    def _given(self) -> tuple[Array, ...]:
        return tuple(a for a in self._setup.contract.arrays if a.role != "output")


def _output(drawn: Drawn, name: str) -> NDArray[Any]:
    return next(e.want for e in drawn.expected if e.name == name)


def _mean(want: NDArray[Any]) -> NDArray[Any]:
    exact = want.astype(np.float64)
    finite = exact[np.isfinite(exact)]
    mean = float(finite.mean()) if finite.size else 0.0
    return np.full(want.shape, mean if want.dtype.kind == "f" else round(mean), want.dtype)
