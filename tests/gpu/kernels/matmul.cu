// Row-major float32 products C = A B in four ways: naive, tiled, register-blocked, split over K.

extern "C" __global__ void naive(const float* a, const float* b, float* c, int m, int n, int k) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum = fmaf(a[row * k + i], b[i * n + col], sum);
    c[row * n + col] = sum;
}

// Block 32 x 32.
extern "C" __global__ void tiled(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[32][32];
    __shared__ float right[32][33];
    int tx = threadIdx.x, ty = threadIdx.y;
    int col = blockIdx.x * 32 + tx, row = blockIdx.y * 32 + ty;
    float sum = 0.0f;
    for (int from = 0; from < k; from += 32) {
        left[ty][tx] = row < m && from + tx < k ? a[row * k + from + tx] : 0.0f;
        right[ty][tx] = col < n && from + ty < k ? b[(from + ty) * n + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 32; ++i) sum = fmaf(left[ty][i], right[i][tx], sum);
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = sum;
}

// Block 16 x 16, tile 64 x 64, 4 x 4 a thread, 16 of K at a time; 8 KiB of dynamic shared memory are used.
extern "C" __global__ void blocked(const float* a, const float* b, float* c, int m, int n, int k) {
    extern __shared__ float shared[];
    float(*left)[64] = reinterpret_cast<float(*)[64]>(shared);
    float(*right)[64] = reinterpret_cast<float(*)[64]>(shared + 16 * 64);
    int tid = threadIdx.y * 16 + threadIdx.x;
    int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int from = 0; from < k; from += 16) {
        for (int i = tid; i < 16 * 64; i += 256) {
            int kk = i % 16, row = row0 + i / 16;
            left[kk][i / 16] = row < m && from + kk < k ? a[row * k + from + kk] : 0.0f;
            int kb = i / 64, col = col0 + i % 64;
            right[kb][i % 64] = col < n && from + kb < k ? b[(from + kb) * n + col] : 0.0f;
        }
        __syncthreads();
        for (int kk = 0; kk < 16; ++kk) {
            float x[4], y[4];
            for (int i = 0; i < 4; ++i) x[i] = left[kk][threadIdx.y * 4 + i];
            for (int j = 0; j < 4; ++j) y[j] = right[kk][threadIdx.x * 4 + j];
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            int row = row0 + threadIdx.y * 4 + i, col = col0 + threadIdx.x * 4 + j;
            if (row < m && col < n) c[row * n + col] = sum[i][j];
        }
}

// Block 16 x 16, grid z slices of K. Partial sums lie in `partial` (slices x m x n, uninitialised); the last block of a
// tile, found by `done` (zero before and after, one a tile), adds the slices in order.
extern "C" __global__ void split(const float* a, const float* b, float* c, float* partial, unsigned* done, int m, int n,
                                 int k) {
    int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    int width = (k + gridDim.z - 1) / gridDim.z;
    int from = blockIdx.z * width, to = min(k, from + width);
    bool inside = row < m && col < n;
    float sum = 0.0f;
    if (inside)
        for (int i = from; i < to; ++i) sum = fmaf(a[row * k + i], b[i * n + col], sum);
    if (inside) partial[((size_t)blockIdx.z * m + row) * n + col] = sum;
    __threadfence();
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        unsigned* mine = done + blockIdx.y * gridDim.x + blockIdx.x;
        last = atomicAdd(mine, 1u) == gridDim.z - 1;
        if (last) *mine = 0;
    }
    __syncthreads();
    if (!last || !inside) return;
    __threadfence();
    float total = 0.0f;
    for (int z = 0; z < gridDim.z; ++z) total += __ldcg(&partial[((size_t)z * m + row) * n + col]);
    c[row * n + col] = total;
}
