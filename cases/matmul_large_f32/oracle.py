"""The trusted answer of a float32 matrix product, in float64, whose own rounding is 2**29 times finer."""

import numpy as np


def oracle(inputs, dims):
    return {"c": inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)}


def terms(inputs, dims):
    """The sum of absolute terms behind each element: the scale of honest rounding where terms cancel."""
    return {"c": np.abs(inputs["a"].astype(np.float64)) @ np.abs(inputs["b"].astype(np.float64))}
