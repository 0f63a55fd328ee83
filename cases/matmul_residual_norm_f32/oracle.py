"""The trusted answer of a product with residual add and RMS norm, in float64."""

import numpy as np


def _sum(inputs):
    h = inputs["residual"].astype(np.float64) + inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)
    return h, np.sqrt((h * h).mean(axis=1, keepdims=True) + 1e-5)


def oracle(inputs, dims):
    h, size = _sum(inputs)
    return {"h": h, "y": h / size * inputs["gamma"].astype(np.float64)}


def terms(inputs, dims):
    _, size = _sum(inputs)
    a, b, residual, gamma = (np.abs(inputs[name].astype(np.float64)) for name in ("a", "b", "residual", "gamma"))
    parts = residual + a @ b
    return {"h": parts, "y": parts / size * gamma}
