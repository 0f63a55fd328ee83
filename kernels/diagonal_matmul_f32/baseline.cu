// What runs today: the diagonal is written out as a matrix, and a general product does the rest.

extern "C" __global__ void write_diagonal(const float* __restrict__ d, float* __restrict__ a, int m)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column < m) a[(long long)row * m + column] = row == column ? d[row] : 0.0f;
}

constexpr int TILE = 32, DEPTH = 16, SIDE = 16;

extern "C" __global__ void __launch_bounds__(SIDE * SIDE)
matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ product, int m, int n, int k)
{
    __shared__ float tile_a[TILE][DEPTH + 1], tile_b[DEPTH][TILE];
    const int x = threadIdx.x, y = threadIdx.y, row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    float sums[2][2] = {};
    for (int depth = 0; depth < k; depth += DEPTH) {
        for (int i = y; i < TILE; i += SIDE)
            tile_a[i][x] = row0 + i < m && depth + x < k ? a[(long long)(row0 + i) * k + depth + x] : 0.0f;
        for (int j = x; j < TILE; j += SIDE)
            tile_b[y][j] = depth + y < k && column0 + j < n ? b[(long long)(depth + y) * n + column0 + j] : 0.0f;
        __syncthreads();
        for (int d = 0; d < DEPTH; ++d)
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j)
                    sums[i][j] = fmaf(tile_a[y + i * SIDE][d], tile_b[d][x + j * SIDE], sums[i][j]);
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
            const int row = row0 + y + i * SIDE, column = column0 + x + j * SIDE;
            if (row < m && column < n) product[(long long)row * n + column] = sums[i][j];
        }
}
