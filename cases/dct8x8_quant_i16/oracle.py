"""The trusted levels: HEVC's integer 8 x 8 transform and quantisation, in 64-bit integers."""

import numpy as np

M = np.array(
    [
        [64, 64, 64, 64, 64, 64, 64, 64],
        [89, 75, 50, 18, -18, -50, -75, -89],
        [83, 36, -36, -83, -83, -36, 36, 83],
        [75, -18, -89, -50, 50, 89, 18, -75],
        [64, -64, -64, 64, 64, -64, -64, 64],
        [50, -89, 18, 75, -75, -18, 89, -50],
        [36, -83, 83, -36, -36, 83, -83, 36],
        [18, -50, 75, -89, 89, -75, 50, -18],
    ],
    np.int64,
)


def oracle(inputs, dims):
    down, across = dims["down"], dims["across"]
    blocks = inputs["residual"].astype(np.int64).reshape(down, 8, across, 8).transpose(0, 2, 1, 3)
    half = (M @ blocks + 2) >> 2
    coefficients = (half @ M.T + 256) >> 9
    sizes = (np.abs(coefficients) * inputs["scales"].astype(np.int64) + 87381) >> 18
    levels = np.where(coefficients < 0, -sizes, sizes)
    return {"levels": np.ascontiguousarray(levels.transpose(0, 2, 1, 3)).reshape(8 * down, 8 * across)}
