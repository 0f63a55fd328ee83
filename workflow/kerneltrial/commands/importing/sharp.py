"""Values for an imported problem: signed and as wide as its arithmetic in float32 bears, not only those it came with.

`get_inputs` mostly draws evenly from 0 to 1, where many a wrong kernel looks right. So bounds are tried from none
at all down to the values that were seen, and the first are taken for which, on every draw of a case, torch in float64
agrees with the oracle, nothing overflows, and torch in float32 is right by the contract's tolerance.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrial.commands.importing.conversing import Asked, ProcessEnded
from kerneltrial.commands.importing.messages import Given
from kerneltrial.inputs.oracle import Answer, Oracle
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.values import generate
from kerneltrial.judge.precision import lower_precision
from kerneltrial.records.case import Case
from kerneltrial.records.contract import Contract
from kerneltrial.store.canonical import digest

Wrong = Callable[[NDArray[Any]], NDArray[Any]]
Bounds = dict[str, tuple[float | None, float | None]]
DRAWS = 6
SCALED = 32  # what a contract allows at most, in units of epsilon times the oracle's terms
_ROOM = 4.0  # and how many times torch's own error in float32, where that is less
_REACHES = (None, 1024.0, 64.0, 8.0, 2.0)
_EPSILON = 2.0**-23
_AGREE = 1e-9


def ladder(given: Sequence[Given]) -> Iterator[tuple[str, Bounds]]:
    """Bounds from wide to narrow, each with a word for it; first with zero among all integers, as they may be indices.

    Integers of which none was zero may be divisors: they stay as seen where zero does not do.
    """
    yield from _rungs(given)
    seen = {one.name: (one.low, one.high) for one in given if one.dtype != "float32" and one.low > 0}
    if seen:
        for word, bounds in _rungs(given):
            yield f"{word}, integers as seen", {**bounds, **seen}


def _rungs(given: Sequence[Given]) -> Iterator[tuple[str, Bounds]]:
    """Bounds of float inputs."""
    floats = [one for one in given if one.dtype == "float32"]
    if not all(math.isfinite(one.low) and math.isfinite(one.high) for one in given):
        raise InputProblem("a tensor that it comes with is not finite")
    for word, low in (
        ("signed", None),
        ("not negative where it was not", 0.0),
        ("positive where it was not negative", 0.0625),
    ):
        if low is not None and not any(one.low >= 0 for one in floats):
            continue
        for reach in _REACHES:
            bounds: Bounds = {}
            for one in floats:
                side = low if low is not None and one.low >= 0 else None if reach is None else -reach
                bounds[one.name] = (side, reach)
            yield f"{word}, {'no bound' if reach is None else f'up to {reach:g}'}", bounds
    for word, names in (("inputs as seen, weights signed", "input"), ("all as seen", "")):
        yield word, {one.name: _seen(one) if one.role == names or not names else (-2.0, 2.0) for one in floats}


def _seen(one: Given) -> tuple[float, float]:
    """The values seen, rounded outward to three digits; a spread is made where there was none."""
    low, high = one.low, one.high
    if low == high:
        low, high = (0.5 * low, 1.5 * low) if low > 0 else (1.5 * low, 0.5 * low) if low < 0 else (0.0, 1.0)
    digit = 10.0 ** (math.floor(math.log10(max(abs(low), abs(high)))) - 2)
    return math.floor(low / digit) * digit, math.ceil(high / digit) * digit


def decimals(bounds: tuple[float | None, float | None]) -> tuple[Decimal | None, Decimal | None]:
    low, high = (None if one is None else Decimal(f"{one:.6g}") for one in bounds)
    return low, high


def tried(asked: Asked, contract: Contract, oracle: Oracle, given: Sequence[Given], least: float) -> int | str:
    """What tolerance (`scaled`, at least `least`) these bounds need, or why they do not do.

    Raises
    ------
    InputProblem
        Where torch in float64 and the oracle differ on finite numbers: then the oracle is not to be trusted. And
        where the problem's process is gone.
    """
    shapes = {one.name: one for one in given}
    seen: set[str] = set()
    need, case = 0.0, Case(name="first", kind="correctness", dimensions={}, seed=1)
    answers: list[Answer] = []
    for draw in range(DRAWS):
        values = generate(contract, case, draw)
        with np.errstate(all="ignore"):
            answer = oracle.answer(contract, values, case.dimensions)
        if not all(np.isfinite(one).all() for one in answer.outputs.values()):
            return f"draw {draw}: not all of the answer is finite"
        seen.add(_digest(answer))
        answers.append(answer)
        raw = {name: _raw(one, shapes[name]) for name, one in values.items()}
        try:
            double, single = asked.outputs(raw, True), asked.outputs(raw, False)
        except ProcessEnded:
            raise
        except InputProblem as problem:
            return f"draw {draw}: {problem}"
        apart = _apart(contract, answer, double, _AGREE, 2.0**-24 * _EPSILON)
        if apart and asked.outputs(raw, True) != double:
            raise InputProblem("two calls with the same values differ: it is random, or keeps something between calls")
        if apart:
            raise InputProblem(f"the oracle made of it differs from torch in float64: {apart}")
        apart = _apart(contract, answer, single, 0.0, SCALED * _EPSILON)
        if apart:
            return f"draw {draw}: torch in float32 is too far off: {apart}"
        need = max(need, _worst(contract, answer, single))
    if len(seen) == 1:
        return "its outputs are the same whatever its inputs are, so that no kernel could fail"
    scaled = next((power for power in (1, 2, 4, 8, 16) if power >= max(_ROOM * need, least)), SCALED)
    return _blunt(contract, answers, scaled) or scaled


def _blunt(contract: Contract, answers: Sequence[Answer], scaled: int) -> str:
    """What the qualification would say: a wrong answer that passes for the right one in every draw; or ""."""
    for array in contract.outputs:
        right = [answer.outputs[array.name] for answer in answers]
        others = [*right[1:], right[0]]
        kinds: dict[str, Wrong] = {"zeros": np.zeros_like}
        if right[0].size > 1:
            kinds["its mean"] = _mean
        if right[0].dtype.kind == "f":
            kinds["the right answer in half precision"] = lambda want: lower_precision(want, "float32")
        passed = {kind: [wrong(want) for want in right] for kind, wrong in kinds.items()}
        for kind, wrong in (passed | {"the answer for other values": others}).items():
            bounds = [_bound(answer, array.name, scaled) for answer in answers]
            if all(np.all(np.abs(w - r) <= b) for w, r, b in zip(wrong, right, bounds, strict=True)):
                return f"no case could fail a kernel that gives {kind} for {array.name}"
    return ""


def _bound(answer: Answer, name: str, scaled: int) -> Any:
    return scaled * _EPSILON * answer.terms[name] + 1e-37 if answer.outputs[name].dtype.kind == "f" else 0


def _mean(want: NDArray[Any]) -> NDArray[Any]:
    mean = float(want.mean())
    return np.full(want.shape, mean if want.dtype.kind == "f" else round(mean), want.dtype)


def _digest(answer: Answer) -> str:
    """Of its numbers, where -0 is 0."""
    return digest(b"".join((one + one.dtype.type(0)).tobytes() for one in answer.outputs.values()))


def _worst(contract: Contract, answer: Answer, outputs: tuple[bytes, ...]) -> float:
    """The largest error in units of epsilon times terms."""
    worst = 0.0
    for array, content in zip(contract.outputs, outputs, strict=True):
        want = answer.outputs[array.name]
        if want.dtype.kind == "f":
            far = np.abs(np.frombuffer(content, np.float64).reshape(want.shape) - want)
            worst = max(worst, float(np.max(far / (_EPSILON * answer.terms[array.name] + 1e-37))))
    return worst


def _raw(values: NDArray[Any], one: Given) -> NDArray[Any]:
    """As torch takes it: truth values are bytes of 0 and 1."""
    return (values != 0) if one.dtype == "bool" else values


def _apart(contract: Contract, answer: Answer, outputs: tuple[bytes, ...], relative: float, scaled: float) -> str:
    if len(outputs) != len(contract.outputs):
        return f"{len(outputs)} outputs in place of {len(contract.outputs)}"
    for array, content in zip(contract.outputs, outputs, strict=True):
        want = answer.outputs[array.name]
        got = np.frombuffer(content, np.float64 if want.dtype.kind == "f" else np.int64)
        if got.size != want.size:
            return f"{array.name} has {got.size} elements in place of {want.size}"
        got = got.reshape(want.shape)
        if want.dtype.kind != "f":
            if not np.array_equal(got, want):
                return f"{array.name}: {int((got != want).sum())} of {want.size} integers differ"
            continue
        bound = relative * np.abs(want) + scaled * answer.terms[array.name] + 1e-37
        over = np.abs(got - want) - bound
        if not (over <= 0).all():
            worst = int(np.nanargmax(np.where(np.isnan(over), np.inf, over)))
            return f"{array.name}: {got.flat[worst]:.9g} in place of {want.flat[worst]:.9g}"
    return ""


def whole_bounds(given: Sequence[Given]) -> Mapping[str, tuple[int, int]]:
    """Integers stay within what was seen, from zero where none was negative: they may be indices."""
    found = {}
    for one in given:
        if one.dtype != "float32":
            found[one.name] = (min(0, int(one.low)), max(1, int(one.high)))
    return found
