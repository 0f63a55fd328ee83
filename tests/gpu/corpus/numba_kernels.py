"""Kernels for numba.cuda: plain functions, compiled to PTX without a card."""

from numba import cuda, types


def axpy(x, y, z):
    i = cuda.grid(1)
    if i < z.size:
        z[i] = x[i] * types.float32(1.25) + y[i]


def matmul(a, b, c):
    s = cuda.shared.array((8, 8), types.float32)
    t = cuda.shared.array((8, 8), types.float32)
    x, y = cuda.grid(2)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    total = types.float32(0)
    for k in range((a.shape[1] + 7) // 8):
        s[j, i] = a[y, k * 8 + i] if y < a.shape[0] and k * 8 + i < a.shape[1] else types.float32(0)
        t[j, i] = b[k * 8 + j, x] if x < b.shape[1] and k * 8 + j < a.shape[1] else types.float32(0)
        cuda.syncthreads()
        for m in range(8):
            total += s[j, m] * t[m, i]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = total


def column_sums(x, y):
    j = cuda.blockIdx.x
    s = cuda.shared.array(64, types.float64)
    t = cuda.threadIdx.x
    total = 0.0
    for i in range(t, x.shape[0], 64):
        total += x[i, j]
    s[t] = total
    cuda.syncthreads()
    step = 32
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        y[j] = s[0]


def histogram(x, y):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(y, x[i] % 16, 1)


def collatz(x, y):
    i = cuda.grid(1)
    if i < x.size:
        v, k = x[i] % 1000 + 1, 0
        while v != 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            k += 1
        y[i] = k
