import math

from numba import cuda, float32

# A row softmax in Python: a block of 128 threads for each row, in three passes over it. Maximum and sum meet in shared
# memory by a tree, so every number of columns is right.


@cuda.jit(device=True)
def largest(shared, value):
    lane = cuda.threadIdx.x
    shared[lane] = value
    cuda.syncthreads()
    half = 64
    while half > 0:
        if lane < half and shared[lane + half] > shared[lane]:
            shared[lane] = shared[lane + half]
        cuda.syncthreads()
        half //= 2
    result = shared[0]
    cuda.syncthreads()
    return result


@cuda.jit(device=True)
def total(shared, value):
    lane = cuda.threadIdx.x
    shared[lane] = value
    cuda.syncthreads()
    half = 64
    while half > 0:
        if lane < half:
            shared[lane] += shared[lane + half]
        cuda.syncthreads()
        half //= 2
    result = shared[0]
    cuda.syncthreads()
    return result


def whole_block(x, y, rows, cols):
    shared = cuda.shared.array(128, float32)
    row = cuda.blockIdx.x

    best = float32(-math.inf)
    for column in range(cuda.threadIdx.x, cols, 128):
        if x[row, column] > best:
            best = x[row, column]
    best = largest(shared, best)

    part = float32(0.0)
    for column in range(cuda.threadIdx.x, cols, 128):
        power = math.exp(x[row, column] - best)
        y[row, column] = power
        part += power
    share = float32(1.0) / total(shared, part)

    for column in range(cuda.threadIdx.x, cols, 128):
        y[row, column] *= share
