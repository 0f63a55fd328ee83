"""The trusted product of a CSR matrix and a vector, in float64."""

import numpy as np


def _sums(offsets, products):
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return np.bincount(rows, weights=products, minlength=len(offsets) - 1)


def _products(inputs):
    return inputs["values"].astype(np.float64) * inputs["x"].astype(np.float64)[inputs["columns"]]


def oracle(inputs, dims):
    return {"y": _sums(inputs["offsets"], _products(inputs))}


def terms(inputs, dims):
    return {"y": _sums(inputs["offsets"], np.abs(_products(inputs)))}
