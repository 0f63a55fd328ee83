"""The trusted answer of residual add and RMS norm, in float64."""

import numpy as np


def _sum(inputs):
    h = inputs["x"].astype(np.float64) + inputs["residual"].astype(np.float64)
    return h, np.sqrt((h * h).mean(axis=1, keepdims=True) + 1e-5)


def oracle(inputs, dims):
    h, size = _sum(inputs)
    return {"h": h, "y": h / size * inputs["gamma"].astype(np.float64)}


def terms(inputs, dims):
    _, size = _sum(inputs)
    parts = np.abs(inputs["x"].astype(np.float64)) + np.abs(inputs["residual"].astype(np.float64))
    return {"h": parts, "y": parts / size * np.abs(inputs["gamma"].astype(np.float64))}
