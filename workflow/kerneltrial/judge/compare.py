"""Every element of an output against the oracle's float64 answer. Pure.

The rules, in order:

1. NaN and infinities stand exactly where the oracle, rounded to the output's dtype, has them (an answer beyond the
   dtype's range is infinite in that dtype). Integers are equal.
   Where the contract says `signed_zero`, a zero has the sign of the oracle's zero.
2. ``|got - want| <= absolute + relative * |want| + scaled * eps(dtype) * sum|terms|`` for every element, or the least
   positive number of the dtype where that is more and the contract allows any error at all.
3. The worst *measure* of error is at most ``baseline_factor * max(baseline's worst measure, FLOOR_ULPS)``.

An error's measure is ``|got - want| / (eps(dtype) * scale)``. The scale is the sum of absolute terms where the oracle
gives it, else the larger of ``|want|`` and the output's root mean square: so cancellation, which makes any relative
error large, does not decide. A sum in another order changes the measure by a small factor (for random rounding it
grows as the square root of the number of terms; Higham, "Accuracy and Stability of Numerical Algorithms", section 4.2).
TF32 or half arithmetic inside a float32 contract raises it by hundreds: an input there is up to 2^-12 of its value off,
4,096 times as much as in float32. FLOOR_ULPS lets a candidate be a few ULPs off where the baseline happens to be lucky.
Where the baseline hits every one of many right answers exactly (sums of small integers come out so in any order), a
candidate has to come within EXACT_ULPS.
"""

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kerneltrial.inputs.dtypes import smallest
from kerneltrial.inputs.oracle import Answer
from kerneltrial.judge.patterns import Mask, describe, describe_values
from kerneltrial.judge.precision import Floats, epsilon, is_float, rounded, ulps_apart
from kerneltrial.records.contract import Contract, Tolerance
from kerneltrial.records.plan import DType
from kerneltrial.records.reason import Finding, Reason

FLOOR_ULPS: Final = 2.0
EXACT_ULPS: Final = 2.0
_MANY: Final = 64  # as many right answers are no luck
_LARGEST_SHARE: Final = 1e9  # what "any error at all, where none is allowed" is written as: records hold no infinity


@dataclass(frozen=True)
class Rule:
    """The right answer, as its dtype holds it, where that is finite, the bound of an error, and an error's unit."""

    want: Floats
    held: Floats
    finite: Mask
    bound: Floats
    unit: Floats


@dataclass(frozen=True)
class Expected:
    """One output as it should be: float64 (or integers) of its shape, the scale of rounding, and the rule."""

    name: str
    dtype: DType
    want: NDArray[Any]
    terms: NDArray[np.float64] | None
    tolerance: Tolerance

    @classmethod
    def of(cls, contract: Contract, answer: Answer) -> "tuple[Expected, ...]":
        """The oracle's answer, output by output as the contract names them."""
        return tuple(
            cls(
                name=output.name,
                dtype=output.dtype,
                want=answer.outputs[output.name],
                terms=answer.terms.get(output.name),
                tolerance=contract.tolerances[output.name],
            )
            for output in contract.outputs
        )

    @cached_property
    def rule(self) -> Rule:
        """What a float output is held against; worked out once, since many candidates are compared with one answer."""
        want = np.asarray(self.want, np.float64)
        held = rounded(want, self.dtype)
        finite = np.isfinite(held)
        size = np.where(finite, np.abs(want), 0.0)
        # Terms that are no number (they overflowed, or hold NaN) allow nothing.
        terms = None if self.terms is None else np.where(np.isfinite(self.terms), self.terms, 0.0)
        bound = float(self.tolerance.absolute) + float(self.tolerance.relative) * size
        # What is smaller than every number of the dtype is 0 there, whatever its digits.
        least = smallest(self.dtype)
        if terms is not None:
            bound = bound + float(self.tolerance.scaled) * epsilon(self.dtype) * terms
            scale = np.maximum(terms, size)
        else:
            count = max(int(finite.sum()), 1)
            scale = np.maximum(size, np.sqrt(np.sum(np.square(size)) / count))
        if self.tolerance.absolute or self.tolerance.relative or self.tolerance.scaled:
            bound = np.maximum(bound, least)
        unit = np.maximum(epsilon(self.dtype) * scale, least)
        return Rule(want=want, held=held, finite=finite, bound=bound, unit=unit)


@dataclass(frozen=True)
class Compared:
    """What comparing one output gave.

    `worst_error` is absolute, at `worst_index`; `bound_share` is the largest error over its bound; `measure` is the
    worst error in ULPs of the scale (see above), 0 for integers. `finding` is None where the output passed.
    """

    output: str
    worst_error: float
    worst_index: tuple[int, ...]
    bound_share: float
    measure: float
    finding: Finding | None


def compare(got: NDArray[Any], expected: Expected, baseline_measure: float | None) -> Compared:
    """Compare one output; `baseline_measure` is None where rule 3 does not apply (the baseline itself, a reference).

    Raises ValueError where `got` has another shape than the oracle's answer: outputs are read by the contract's shape,
    so that is a mistake of the caller.
    """
    if got.shape != expected.want.shape:
        raise ValueError(f"output {expected.name}: shape {got.shape}, the oracle has {expected.want.shape}")
    if not is_float(expected.dtype):
        return _compare_integers(got, expected)
    rule = expected.rule
    values = np.asarray(got, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(values - rule.want)
        finite = rule.finite & np.isfinite(values)
        wrong_kind = ~(finite | (values == rule.held) | (np.isnan(values) & np.isnan(rule.held)))
        if not finite.all():
            error = np.where(finite, error, 0.0)
    return _judged(_Errors(values, error, wrong_kind, _wrong_sign(values, expected)), expected, baseline_measure)


def _wrong_sign(values: Floats, expected: Expected) -> Mask | None:
    """Zeros of the other sign, where the contract tells them apart."""
    if not expected.tolerance.signed_zero:
        return None
    held = expected.rule.held
    return np.asarray((values == 0) & (held == 0) & (np.signbit(values) != np.signbit(held)), np.bool_)


@dataclass(frozen=True)
class _Errors:
    """Values, their absolute errors (0 where something is not finite), and where they are wrong in other ways.

    `wrong_kind`: NaN or infinity out of place; `wrong_sign`: zeros of the other sign, None where none is wrong.
    """

    values: Floats
    error: Floats
    wrong_kind: Mask
    wrong_sign: Mask | None


def _judged(errors: _Errors, expected: Expected, baseline_measure: float | None) -> Compared:
    rule, error = expected.rule, errors.error
    share, measure = _ratio(error, rule.bound), _ratio(error, rule.unit)
    too_far = ~(error <= rule.bound)
    if errors.wrong_sign is not None:
        too_far |= errors.wrong_sign
    first = errors.wrong_kind if errors.wrong_kind.any() or share.max(initial=0.0) > 1 else errors.wrong_sign
    worst = _worst_place(share, first)
    finding = None
    if too_far.any() or errors.wrong_kind.any():
        reason = Reason.WRONG_NONFINITE if errors.wrong_kind.any() else Reason.WRONG_VALUES
        detail = _wrong(errors.values, rule.want, too_far | errors.wrong_kind, worst, expected)
        finding = Finding(reason=reason, detail=detail)
    elif baseline_measure is not None:
        allowed = _allowed(expected, baseline_measure)
        if measure.max(initial=0.0) > allowed:
            worst = _worst_place(measure, None)
            finding = _precision_loss(errors.values, measure, expected, (baseline_measure, allowed))
    return _compared(expected, error, (share, float(measure.max(initial=0.0))), worst, finding)


def _allowed(expected: Expected, baseline_measure: float) -> float:
    if baseline_measure == 0.0 and int(np.count_nonzero(expected.rule.want)) >= _MANY:
        return EXACT_ULPS
    return float(expected.tolerance.baseline_factor) * max(baseline_measure, FLOOR_ULPS)


def _precision_loss(values: Floats, measure: Floats, expected: Expected, limits: tuple[float, float]) -> Finding:
    baseline, allowed = limits
    far = measure > allowed
    worst = _worst_place(measure, None)
    return Finding(
        reason=Reason.PRECISION_LOSS,
        detail=f"output {expected.name}: within tolerance, but the worst error is {measure[worst]:.3g} ULPs of the "
        f"scale where the baseline's is {baseline:.3g} and {allowed:.3g} are allowed; {int(far.sum())} of {far.size} "
        f"elements are beyond that ({describe(far)}); " + _at(values, expected.rule.want, worst, expected.dtype),
    )


def _compare_integers(got: NDArray[Any], expected: Expected) -> Compared:
    want = expected.want
    wrong = np.asarray(got != want, np.bool_)
    with np.errstate(invalid="ignore"):
        error = np.where(wrong, np.abs(got.astype(np.float64) - np.asarray(want, np.float64)), 0.0)
    # Beyond 2^53 two different integers can be one float64: an inequality is at least 1 apart.
    error = np.where(wrong, np.maximum(error, 1.0), 0.0)
    share = np.where(wrong, _LARGEST_SHARE, 0.0)
    worst = _worst_place(error, None)
    finding = None
    if wrong.any():
        finding = Finding(reason=Reason.WRONG_VALUES, detail=_wrong(got, want, wrong, worst, expected))
    return _compared(expected, error, (share, 0.0), worst, finding)


def _ratio(error: Floats, unit: Floats) -> Floats:
    """Errors in a unit; where the unit is 0, any error at all is as large as is written."""
    ratio = np.zeros_like(error)
    with np.errstate(divide="ignore", over="ignore"):
        np.divide(error, unit, out=ratio, where=error > 0)
    return np.asarray(np.minimum(ratio, _LARGEST_SHARE), np.float64)


def _worst_place(size: Floats, first: Mask | None) -> tuple[int, ...]:
    """Row-major index of the first true element of `first`, else of the largest `size`."""
    if size.size == 0:
        return (0,) * size.ndim
    flat = int(np.argmax(first)) if first is not None and first.any() else int(np.argmax(size))
    return tuple(int(i) for i in np.unravel_index(flat, size.shape))


def _compared(
    expected: Expected,
    error: Floats,
    share_and_measure: tuple[Floats, float],
    worst: tuple[int, ...],
    finding: Finding | None,
) -> Compared:
    share, measure = share_and_measure
    return Compared(
        output=expected.name,
        worst_error=min(float(error[worst]), sys.float_info.max) if error.size else 0.0,
        worst_index=worst,
        bound_share=float(share.max(initial=0.0)),
        measure=measure,
        finding=finding,
    )


def _wrong(got: NDArray[Any], want: NDArray[Any], wrong: Mask, worst: tuple[int, ...], expected: Expected) -> str:
    values = describe_values(got[wrong])
    return (
        f"output {expected.name}: {int(wrong.sum())} of {wrong.size} elements are wrong ({describe(wrong)}"
        + (f"; {values}" if values else "")
        + "); "
        + _at(got, want, worst, expected.dtype)
    )


def _at(got: NDArray[Any], want: NDArray[Any], worst: tuple[int, ...], dtype: DType) -> str:
    place = ", ".join(str(i) for i in worst)
    if not is_float(dtype):
        return f"worst at [{place}]: expected {want[worst]}, got {got[worst]}"
    apart = ulps_apart(float(got[worst]), float(want[worst]), dtype)
    distance = "" if apart is None else f", {apart} ULPs apart"
    return f"worst at [{place}]: expected {float(want[worst])!r}, got {float(got[worst])!r}{distance}"
