"""The trusted answer of a float16 matrix product, in float64."""

import numpy as np


def oracle(inputs, dims):
    return {"c": inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)}


def terms(inputs, dims):
    return {"c": np.abs(inputs["a"].astype(np.float64)) @ np.abs(inputs["b"].astype(np.float64))}
