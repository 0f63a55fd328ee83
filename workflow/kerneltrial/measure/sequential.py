"""The group-sequential plan of a confirmation: how many processes at each look, and at which level each look is held.

A confirmation may look at its intervals after n, 2n, 4n ... processes and stop once they are narrow. It stops on the
*width* of the intervals, never on where they lie. For normal medians the mean is independent of all standard deviations
on the way, so stopping early favours neither answer, and nothing is to be paid for looking several times at where the
interval lies (as Pocock's levels would; Biometrika 64 (1977), 191-199). What is to be paid for is that a plan which
stops on narrow intervals stops on deviations that happen to be small (Anscombe, J. R. Statist. Soc. B 15 (1953), 1-29).
The level below is what makes this good for the deviation that is worst for it, by numerical integration.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import erfc, lgamma, log, sqrt
from typing import Any, NamedTuple

from kerneltrial.measure.quantile import student_t
from kerneltrial.records.protocol import Protocol
from kerneltrial.records.record import Interval

_GRID = 200
_TOLERANCE = 1e-6
_DEVIATIONS = 20  # of process medians that are tried


@dataclass(frozen=True)
class Plan:
    """Numbers of processes at which to look, the confidence of the t intervals there, and when these are narrow."""

    at: tuple[int, ...]
    nominal_confidence: float
    precision: float


def plan_of(protocol: Protocol) -> Plan:
    """The plan that a protocol fixes."""
    at = looks(protocol.confirmation_processes, protocol.confirmation_looks)
    return Plan(at, nominal_confidence(at, float(protocol.confidence)), float(protocol.precision))


def looks(first: int, count: int) -> tuple[int, ...]:
    """Numbers of processes at which a confirmation looks, doubled from one to the next.

    >>> looks(5, 3), looks(6, 1)
    ((5, 10, 20), (6,))
    """
    return tuple(first * 2**look for look in range(count))


@lru_cache(maxsize=64)
def nominal_confidence(at: tuple[int, ...], confidence: float) -> float:
    """The confidence of each look's interval, so that the interval where a plan stops holds with `confidence`.

    It does so for whatever standard deviation the medians have; where that is small, so that the first look is the
    last, the interval holds with the nominal confidence itself.
    """
    if len(at) == 1:
        return confidence
    import numpy as np

    low, high = confidence, 1 - (1 - confidence) / len(at)  # the upper end holds whatever a plan stops on
    near = [sqrt(count) / student_t((1 + confidence) / 2, count - 1) for count in (at[0], at[-1])]
    tried = np.geomspace(near[0] / 2, near[1] * 1.5, _DEVIATIONS)  # where looks just become narrow
    worst = max(tried, key=lambda deviation: _missed(at, (low + high) / 2, float(deviation)))
    while high - low > _TOLERANCE:
        middle = (low + high) / 2
        low, high = (middle, high) if _missed(at, middle, float(worst)) > 1 - confidence else (low, middle)
    return high


def _missed(at: Sequence[int], nominal: float, deviation: float) -> float:
    """The chance that the interval where a plan stops misses the mean.

    Parameters
    ----------
    deviation : float
        The standard deviation of the normal medians, in units of the asked precision (half an interval's width).

    Notes
    -----
    The sum of squares q about the mean of n medians, in units of the variance, is chi-squared with n - 1 degrees of
    freedom, and each later median adds an independent square. `going_on` is the density of q where the plan has not
    stopped yet. Given q the mean is normal, and the interval misses it with a chance of 2 Phi(-t sqrt(q / (n - 1))).
    """
    import numpy as np

    top = at[-1] + 10 * (2 * at[-1]) ** 0.5 + 20  # hardly any sum of squares lies above
    missed, before = 0.0, 1
    going_on: _Density | None = None
    for count in at:
        quantile = student_t((1 + nominal) / 2, count - 1)
        last = count == at[-1]
        edge = top if last else min(top, (count - 1) * count / (quantile * deviation) ** 2)
        stopping = _density(np.linspace(0.0, edge, _GRID + 1), going_on, count - before)
        misses = [erfc(quantile * sqrt(q / (count - 1) / 2)) for q in stopping.at]
        missed += float(np.trapezoid(stopping.values * misses, stopping.at))
        if not last:
            going_on = _density(np.linspace(edge, top, _GRID + 1), going_on, count - before)
        before = count
    return missed


class _Density(NamedTuple):
    """Values of a density at points in ascending order."""

    at: Any
    values: Any


def _density(at: Any, before: _Density | None, freedom: int) -> _Density:
    """That of a sum of squares: of `before` and so many independent ones, or of these alone; trapezoidal rule."""
    import numpy as np

    if before is None:
        return _Density(at, _chi_squared(at, freedom))
    kernel = _chi_squared(at[:, None] - before.at[None, :], freedom)
    return _Density(at, np.trapezoid(kernel * before.values[None, :], before.at, axis=1))


def _chi_squared(at: Any, freedom: int) -> Any:
    import numpy as np

    positive = np.maximum(at, 1e-300)
    logs = (freedom / 2 - 1) * np.log(positive) - positive / 2 - freedom / 2 * log(2) - lgamma(freedom / 2)
    return np.where(at > 0, np.exp(logs), 0.0)


def narrow(intervals: Sequence[Interval], precision: float) -> bool:
    """Whether every interval of a ratio is known to `precision`, such as 0.0025, on either side of its middle."""
    return all(max(i.high / i.middle, i.middle / i.low) <= 1 + precision for i in intervals)
