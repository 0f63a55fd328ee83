"""The trusted deblocking filter, in 64-bit integers."""

import numpy as np

ALPHA, BETA, TC = 40, 12, 6


def _across_columns(picture):
    """Filter at columns 8, 16, ...: every border at once, since no filter reaches over half of a block."""
    out = picture.copy()
    at = np.arange(8, picture.shape[1], 8)
    p1, p0, q0, q1 = (picture[:, at + i] for i in (-2, -1, 0, 1))
    on = (np.abs(p0 - q0) < ALPHA) & (np.abs(p1 - p0) < BETA) & (np.abs(q1 - q0) < BETA)
    delta = np.where(on, np.clip(((q0 - p0) * 4 + (p1 - q1) + 4) >> 3, -TC, TC), 0)
    out[:, at - 1] = np.clip(p0 + delta, 0, 255)
    out[:, at] = np.clip(q0 - delta, 0, 255)
    return out


def oracle(inputs, dims):
    half = _across_columns(inputs["picture"].astype(np.int64))
    return {"smooth": np.ascontiguousarray(_across_columns(half.T).T)}
