"""The group-sequential plan of a confirmation: how many processes at each look, and at which level each look is held.

A confirmation may look at its intervals after n, 2n, 4n ... processes and stop once they are narrow. Who looks several
times is wrong more often than once, so every look's interval is drawn at a nominal level below the asked one, the same
at each (Pocock, Biometrika 64 (1977), 191-199), such that all looks together are wrong as often as was asked. The level
follows from the normal process by numerical integration (Armitage, McPherson and Rowe, J. R. Statist. Soc. A 132
(1969), 235-244) and is used for t quantiles as it is (Jennison and Turnbull, Group Sequential Methods, 2000, 4.4).

A look stops on the *width* of the intervals, never on where they lie: for normal medians width and place are
independent, so that stopping early favours neither answer.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

from kerneltrial.records.record import Interval

_GRID = 400
_TOLERANCE = 1e-7


def looks(first: int, most: int) -> tuple[int, ...]:
    """Numbers of processes at which a confirmation looks: doubled from `first`, `most` the last.

    >>> looks(5, 20), looks(5, 5), looks(6, 20)
    ((5, 10, 20), (5,), (6, 12, 20))
    """
    found = [first]
    while found[-1] < most:
        found.append(min(2 * found[-1], most))
    return tuple(found)


@lru_cache(maxsize=64)
def nominal_confidence(at: tuple[int, ...], confidence: float) -> float:
    """The confidence of each look's interval, so that all looks together hold with `confidence`."""
    if len(at) == 1:
        return confidence
    low, high = confidence, 1 - (1 - confidence) / len(at)  # between one look and looks that know nothing of each other
    while high - low > _TOLERANCE:
        middle = (low + high) / 2
        low, high = (middle, high) if _wrong(at, middle) > 1 - confidence else (low, middle)
    return high


def _wrong(at: Sequence[int], nominal: float) -> float:
    """The chance that a sum of standard normals leaves the band of z at any of the looks.

    `density` is that of the sum, at the looks so far, where it never left the band: the integral over the last look's
    band with the normal density of what was added since, by the trapezoidal rule.
    """
    import numpy as np

    z = NormalDist().inv_cdf((1 + nominal) / 2)
    edge = z * at[0] ** 0.5
    points = np.linspace(-edge, edge, _GRID + 1)
    density = np.exp(-(points**2) / (2 * at[0])) / np.sqrt(2 * np.pi * at[0])
    for before, now in pairwise(at):
        added = now - before
        edge = z * now**0.5
        ahead = np.linspace(-edge, edge, _GRID + 1)
        kernel = np.exp(-((ahead[:, None] - points[None, :]) ** 2) / (2 * added)) / np.sqrt(2 * np.pi * added)
        density = np.trapezoid(kernel * density[None, :], points, axis=1)
        points = ahead
    return 1 - float(np.trapezoid(density, points))


def narrow(intervals: Sequence[Interval], precision: float) -> bool:
    """Whether every interval of a ratio is known to `precision`, such as 0.0025, on either side of its middle."""
    return all(max(i.high / i.middle, i.middle / i.low) <= 1 + precision for i in intervals)
