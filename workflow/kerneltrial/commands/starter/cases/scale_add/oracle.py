"""The trusted answer in float64. It is never timed, and a candidate never sees it."""

import numpy as np

ALPHA = 1.5  # as in the contract


def oracle(inputs, dims):
    return {"out": ALPHA * inputs["x"].astype(np.float64) + inputs["y"].astype(np.float64)}


def terms(inputs, dims):
    """The sum of absolute terms behind each element: the scale of honest rounding."""
    return {"out": np.abs(ALPHA * inputs["x"].astype(np.float64)) + np.abs(inputs["y"].astype(np.float64))}
