"""The trusted counts."""

import numpy as np


def oracle(inputs, dims):
    return {"counts": np.bincount(inputs["x"], minlength=256).astype(np.int64)}
