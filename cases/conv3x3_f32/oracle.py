"""The trusted answer of a 3 x 3 convolution, in float64: nine products of matrices, one a place of the filter."""

import numpy as np


def _convolved(x, w):
    _, height, width = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    y = np.zeros((w.shape[0], height, width))
    for u in range(3):
        for v in range(3):
            y += np.tensordot(w[:, :, u, v], padded[:, u : u + height, v : v + width], axes=1)
    return y


def oracle(inputs, dims):
    return {"y": _convolved(inputs["x"].astype(np.float64), inputs["w"].astype(np.float64))}


def terms(inputs, dims):
    return {"y": _convolved(np.abs(inputs["x"].astype(np.float64)), np.abs(inputs["w"].astype(np.float64)))}
