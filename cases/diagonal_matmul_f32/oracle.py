"""The trusted product of a diagonal matrix and a matrix, in float64."""

import numpy as np


def oracle(inputs, dims):
    return {"c": inputs["d"].astype(np.float64)[:, None] * inputs["b"].astype(np.float64)}
