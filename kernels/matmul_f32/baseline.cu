// The kernel that runs today: a tiled float32 matrix product with register blocking.
//
// A block of 256 threads computes a 64 x 64 tile of c in steps of 16 along k. Both tiles lie in shared memory; the tile
// of a is stored transposed, so that a thread reads its four rows as one aligned 16-byte word, and is padded by 4
// floats, which keeps that alignment and spreads the stores over the banks. Each thread holds 4 x 4 sums in registers.
// Rows and columns beyond the matrices are read as zero and never written, so every shape is right.

constexpr int TILE = 64;       // rows and columns of c a block
constexpr int STEP = 16;       // depth of a tile along k
constexpr int THREADS = 256;   // 16 x 16 threads of 4 x 4 elements
constexpr int PADDED = TILE + 4;

extern "C" __global__ void __launch_bounds__(THREADS)
matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k)
{
    __shared__ __align__(16) float tile_a[STEP][PADDED];
    __shared__ __align__(16) float tile_b[STEP][TILE];

    const int thread = threadIdx.x;
    const int row = (thread / 16) * 4, column = (thread % 16) * 4;          // this thread's corner within the tile
    const int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    float sums[4][4] = {};

    for (int depth = 0; depth < k; depth += STEP) {
        // 1024 elements of each tile, 4 a thread; neighbours in a warp read neighbours in memory.
        for (int part = 0; part < 4; ++part) {
            const int element = thread + part * THREADS;
            const int ar = element / STEP, ak = element % STEP;
            const int bk = element / TILE, bc = element % TILE;
            const long long from_row = first_row + ar, from_depth = depth + bk;
            tile_a[ak][ar] = from_row < m && depth + ak < k ? a[from_row * k + depth + ak] : 0.0f;
            tile_b[bk][bc] = from_depth < k && first_column + bc < n ? b[from_depth * n + first_column + bc] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int i = 0; i < STEP; ++i) {
            const float4 x = *reinterpret_cast<const float4*>(&tile_a[i][row]);
            const float4 y = *reinterpret_cast<const float4*>(&tile_b[i][column]);
            const float left[4] = {x.x, x.y, x.z, x.w}, right[4] = {y.x, y.y, y.z, y.w};
            #pragma unroll
            for (int r = 0; r < 4; ++r)
                #pragma unroll
                for (int s = 0; s < 4; ++s)
                    sums[r][s] = fmaf(left[r], right[s], sums[r][s]);
        }
        __syncthreads();
    }

    for (int r = 0; r < 4; ++r)
        for (int s = 0; s < 4; ++s)
            if (first_row + row + r < m && first_column + column + s < n)
                c[(long long)(first_row + row + r) * n + first_column + column + s] = sums[r][s];
}
