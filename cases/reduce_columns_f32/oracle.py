"""The trusted answer of column sums, in float64."""

import numpy as np


def oracle(inputs, dims):
    return {"y": inputs["x"].astype(np.float64).sum(axis=0)}


def terms(inputs, dims):
    return {"y": np.abs(inputs["x"].astype(np.float64)).sum(axis=0)}
