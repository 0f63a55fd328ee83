"""The trusted answer of residual add and layer norm, in float64."""

import numpy as np


def _moments(inputs):
    h = inputs["x"].astype(np.float64) + inputs["residual"].astype(np.float64)
    mean = h.mean(axis=1, keepdims=True)
    deviation = np.sqrt(((h - mean) ** 2).mean(axis=1, keepdims=True) + 1e-5)
    return h, mean, deviation


def oracle(inputs, dims):
    h, mean, deviation = _moments(inputs)
    gamma, beta = inputs["gamma"].astype(np.float64), inputs["beta"].astype(np.float64)
    return {"h": h, "y": (h - mean) / deviation * gamma + beta}


def terms(inputs, dims):
    _, _, deviation = _moments(inputs)
    size = np.abs(inputs["x"].astype(np.float64)) + np.abs(inputs["residual"].astype(np.float64))
    gamma, beta = np.abs(inputs["gamma"].astype(np.float64)), np.abs(inputs["beta"].astype(np.float64))
    return {"h": size, "y": (size + size.mean(axis=1, keepdims=True)) / deviation * gamma + beta}
