from numba import cuda, float32

# A tiled matrix product in Python: 16 x 16 threads a block, one element of c a thread. Places of the tiles that lie
# beyond the matrices hold zero, so every shape is right. kerneltrial compiles the function named by the plan's entry.


def tiled(a, b, c, m, n, k):
    tile_a = cuda.shared.array((16, 16), float32)
    tile_b = cuda.shared.array((16, 16), float32)
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    j = cuda.blockIdx.x * 16 + column
    i = cuda.blockIdx.y * 16 + row

    total = float32(0.0)
    for depth in range(0, k, 16):
        tile_a[row, column] = a[i, depth + column] if i < m and depth + column < k else float32(0.0)
        tile_b[row, column] = b[depth + row, j] if depth + row < k and j < n else float32(0.0)
        cuda.syncthreads()
        for step in range(16):
            total += tile_a[row, step] * tile_b[step, column]
        cuda.syncthreads()

    if i < m and j < n:
        c[i, j] = total
