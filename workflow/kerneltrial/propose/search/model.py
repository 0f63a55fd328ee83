"""A small Gaussian process on what the prior leaves unexplained, in plain NumPy.

The value modelled is y = log(ratio), higher is better. Its mean is the negative log of the prior's cycles, shifted and
tilted by the data (a constant and a linear kernel on the prior). On the parameters lie squared-exponential kernels
(Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1): one a parameter, since most
parameters help or hurt by themselves, and one on all together. Amplitude and length are those of a small grid with the
highest marginal likelihood: no optimiser, hence the same answer each time.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

AMPLITUDES = (0.1, 0.2, 0.4, 0.8)
LENGTHS = (0.3, 0.6, 1.2)
SINGLE_SHARE = 0.7  # of the variance: what a parameter does whatever the others are
NOISE = 0.05  # what no smooth function of the parameters explains, such as the compiler's luck
SHIFT_VARIANCE = 9.0  # the prior's cycles have no scale
TILT_VARIANCE = 0.25  # the prior's slope is near one, or it would be no prior


@dataclass(frozen=True)
class Points:
    """n configurations. `features` is (n, d), scaled to 0..1; `guess` is (n,), the prior's log speed, centred."""

    features: Floats
    guess: Floats

    def at(self, rows: NDArray[np.intp]) -> "Points":
        return Points(self.features[rows], self.guess[rows])


@dataclass(frozen=True)
class Fitted:
    """A process that has seen results."""

    seen: Points
    amplitude: float
    length: float
    weights: Floats
    inverse_root: Floats

    def predict(self, points: Points) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of y at `points`, each of shape (n,)."""
        across = _kernel(points, self.seen, self.amplitude, self.length)
        mean = points.guess + across @ self.weights
        own = SHIFT_VARIANCE + TILT_VARIANCE * points.guess**2 + self.amplitude**2
        explained = ((across @ self.inverse_root.T) ** 2).sum(axis=1)
        return mean, np.sqrt(np.maximum(own - explained, 0.0))


def fit(seen: Points, results: Floats) -> Fitted:
    """Fit to `results`, y at each of `seen`, shape (n,), n at least 1."""
    residual = results - seen.guess
    best: tuple[float, Fitted] | None = None
    for amplitude, length in product(AMPLITUDES, LENGTHS):
        matrix = _kernel(seen, seen, amplitude, length) + NOISE**2 * np.eye(len(results))
        root = np.linalg.cholesky(matrix)
        inverse_root = np.linalg.inv(root)
        half = inverse_root @ residual
        likelihood = float(-0.5 * half @ half - np.log(np.diag(root)).sum())
        if best is None or likelihood > best[0] + 1e-9:
            best = likelihood, Fitted(seen, amplitude, length, inverse_root.T @ half, inverse_root)
    assert best is not None  # the grid is not empty
    return best[1]


def _kernel(x: Points, y: Points, amplitude: float, length: float) -> Floats:
    apart = (x.features[:, None, :] - y.features[None, :, :]) ** 2 / (-2 * length**2)
    near = SINGLE_SHARE * np.exp(apart).mean(axis=2) + (1 - SINGLE_SHARE) * np.exp(apart.sum(axis=2))
    covariance: Floats = SHIFT_VARIANCE + TILT_VARIANCE * np.outer(x.guess, y.guess) + amplitude**2 * near
    return covariance


def squared_distances(x: Floats, y: Floats) -> Floats:
    """Return squared Euclidean distances, (n, d) and (m, d) to (n, m)."""
    result: Floats = ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2)
    return result
