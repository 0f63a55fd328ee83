"""The trusted prefix sums, in 64 bits, and what 32 bits hold of them."""

import numpy as np


def oracle(inputs, dims):
    return {"y": np.cumsum(inputs["x"], dtype=np.int64).astype(np.int32).astype(np.int64)}
