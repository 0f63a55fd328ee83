"""The trusted cross entropy, in float64."""

import numpy as np


def _parts(inputs):
    x = inputs["logits"].astype(np.float64)
    maximum = x.max(axis=1)
    powers = np.exp(x - maximum[:, None])
    return x, maximum, powers, x[np.arange(len(x)), inputs["labels"]]


def oracle(inputs, dims):
    _, maximum, powers, right = _parts(inputs)
    return {"loss": np.log(powers.sum(axis=1)) + (maximum - right)}


def terms(inputs, dims):
    x, maximum, powers, right = _parts(inputs)
    total = powers.sum(axis=1)
    # a logit of minus infinity is infinitely far from the maximum, and counts for nothing
    distance = np.where(powers > 0, powers * (maximum[:, None] - x), 0.0).sum(axis=1) / total
    return {"loss": 1.0 + np.abs(maximum) + np.abs(right) + distance + np.log(total)}
