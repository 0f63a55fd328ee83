"""The trusted answer of row sums, in float64."""

import numpy as np


def oracle(inputs, dims):
    return {"y": inputs["x"].astype(np.float64).sum(axis=1)}


def terms(inputs, dims):
    return {"y": np.abs(inputs["x"].astype(np.float64)).sum(axis=1)}
