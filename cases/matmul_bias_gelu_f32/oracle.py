"""The trusted answer of a product with bias and GELU, in float64."""

import math

import numpy as np

_ERF = np.vectorize(math.erf, otypes=[np.float64])


def _wide(inputs):
    return tuple(inputs[name].astype(np.float64) for name in ("a", "b", "bias"))


def oracle(inputs, dims):
    a, b, bias = _wide(inputs)
    z = a @ b + bias
    return {"c": 0.5 * z * (1.0 + _ERF(z / math.sqrt(2.0)))}


def terms(inputs, dims):
    a, b, bias = (np.abs(values) for values in _wide(inputs))
    return {"c": a @ b + bias}
