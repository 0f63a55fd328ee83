"""The trusted prefix sums, in 64 bits."""

import numpy as np


def oracle(inputs, dims):
    return {"y": np.cumsum(inputs["x"], dtype=np.int64)}
