"""Right values at some elements of an output: kept as text, and compared again. Pure."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrial.judge.compare import Expected
from kerneltrial.judge.precision import is_float, rounded
from kerneltrial.records.best_case import PLACES, ExpectedOutput


def kept(expected: Expected) -> ExpectedOutput:
    """At most `PLACES` elements of the right answer, evenly spread, with what is allowed at each."""
    size = expected.want.size
    places = (
        np.unique(np.linspace(0, max(size - 1, 0), min(size, PLACES)).astype(np.int64)) if size else np.zeros(0, int)
    )
    want = expected.want.reshape(-1)[places]
    floats = is_float(expected.dtype)
    bound = expected.rule.bound * np.ones(expected.want.shape) if floats else np.zeros(expected.want.shape)
    return ExpectedOutput(
        dtype=expected.dtype,
        shape=expected.want.shape,
        places=tuple(map(int, places)),
        want=tuple(f"{float(value):.15g}" if floats else str(int(value)) for value in want),
        allowed=tuple(f"{float(value):.6g}" for value in bound.reshape(-1)[places]),
    )


def share_of_bound(got: NDArray[Any], told: ExpectedOutput) -> tuple[float, int]:
    """The worst error at the places as a share of what is allowed there, and how many are beyond it or no number.

    `got` is the whole output, floats as float64.
    """
    values = got.reshape(-1)[np.asarray(told.places, np.int64)]
    if not is_float(told.dtype):
        wrong = sum(int(value) != int(want) for value, want in zip(values, told.want, strict=True))
        return float(wrong > 0), wrong
    want, allowed = (np.array([float(text) for text in texts]) for texts in (told.want, told.allowed))
    held = rounded(want, told.dtype)
    finite = np.isfinite(held) & np.isfinite(values)
    alike = (values == held) | (np.isnan(values) & np.isnan(held))
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(finite, np.abs(values - want), 0.0)
        exact = alike & (allowed == 0.0)  # the right answer, but for the digits that its text has
        share = np.where((error > 0) & ~exact, error / allowed, 0.0)
    wrong = int(np.count_nonzero(~alike & (~finite | (share > 1.0))))
    return float(share.max(initial=0.0)), wrong
