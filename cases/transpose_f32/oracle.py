"""The trusted transpose."""

import numpy as np


def oracle(inputs, dims):
    return {"y": np.ascontiguousarray(inputs["x"].astype(np.float64).T)}
