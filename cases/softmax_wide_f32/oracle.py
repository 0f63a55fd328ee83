"""The trusted answer of a softmax of long rows, in float64."""

import numpy as np


def oracle(inputs, dims):
    x = inputs["x"].astype(np.float64)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": powers / powers.sum(axis=1, keepdims=True)}
