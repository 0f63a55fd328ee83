// The kernel that runs today: a tiled float32 matrix product with register blocking.
//
// A block of 128 threads computes a 32 x 32 tile of c in steps of 32 along k; small tiles, since products of a few
// hundred rows and columns must still give most multiprocessors a block. A thread owns the same place in the tiles of
// a, b and c: four neighbours of row `row` and of the row 16 below. It loads those of a and b as 16-byte words, and
// holds the sums of those of c. Rows of a's tile are padded by 4 floats, so that the rows that a warp reads at once lie
// in different banks. What lies beyond the matrices is read as zero and never written, so every shape is right.

constexpr int TILE = 32;                  // rows and columns of c a block, and its step along k
constexpr int HALF = TILE / 2;
constexpr int THREADS = TILE * TILE / 8;  // 16 x 8 threads of 2 x 4 elements

// Four neighbours of a row. VECTOR: they lie on 16 bytes, inside the matrix or outside as a whole, since the number of
// columns is a multiple of 4.
template <bool VECTOR>
__device__ __forceinline__ float4 load4(const float* x, int row, int column, int rows, int columns)
{
    float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const float* from = x + (long long)row * columns + column;
    if (VECTOR) {
        if (row < rows && column < columns) four = *reinterpret_cast<const float4*>(from);
    } else if (row < rows) {
        if (column < columns) four.x = from[0];
        if (column + 1 < columns) four.y = from[1];
        if (column + 2 < columns) four.z = from[2];
        if (column + 3 < columns) four.w = from[3];
    }
    return four;
}

template <bool VECTOR>
__device__ __forceinline__ void store4(float* x, const float (&four)[4], int row, int column, int rows, int columns)
{
    float* to = x + (long long)row * columns + column;
    if (VECTOR) {
        if (row < rows && column < columns)
            *reinterpret_cast<float4*>(to) = make_float4(four[0], four[1], four[2], four[3]);
    } else if (row < rows) {
        for (int i = 0; i < 4; ++i)
            if (column + i < columns) to[i] = four[i];
    }
}

template <bool VECTOR>
__device__ __forceinline__ void product(const float* __restrict__ a, const float* __restrict__ b,
                                        float* __restrict__ c, int m, int n, int k,
                                        float (&tile_a)[TILE][TILE + 4], float (&tile_b)[TILE][TILE])
{
    const int row = threadIdx.x / 8, column = threadIdx.x % 8 * 4;
    const int c_row = blockIdx.y * TILE + row, c_column = blockIdx.x * TILE + column;
    float upper[4] = {}, lower[4] = {};

    for (int depth = 0; depth < k; depth += TILE) {
        // Into registers first: all four loads are under way before the barrier, behind which the old tiles are done.
        const float4 a_upper = load4<VECTOR>(a, c_row, depth + column, m, k);
        const float4 a_lower = load4<VECTOR>(a, c_row + HALF, depth + column, m, k);
        const float4 b_upper = load4<VECTOR>(b, depth + row, c_column, k, n);
        const float4 b_lower = load4<VECTOR>(b, depth + row + HALF, c_column, k, n);
        __syncthreads();
        *reinterpret_cast<float4*>(&tile_a[row][column]) = a_upper;
        *reinterpret_cast<float4*>(&tile_a[row + HALF][column]) = a_lower;
        *reinterpret_cast<float4*>(&tile_b[row][column]) = b_upper;
        *reinterpret_cast<float4*>(&tile_b[row + HALF][column]) = b_lower;
        __syncthreads();

        #pragma unroll
        for (int i = 0; i < TILE; i += 4) {
            const float4 u = *reinterpret_cast<const float4*>(&tile_a[row][i]);
            const float4 l = *reinterpret_cast<const float4*>(&tile_a[row + HALF][i]);
            const float us[4] = {u.x, u.y, u.z, u.w}, ls[4] = {l.x, l.y, l.z, l.w};
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float4 r = *reinterpret_cast<const float4*>(&tile_b[i + j][column]);
                const float right[4] = {r.x, r.y, r.z, r.w};
                #pragma unroll
                for (int s = 0; s < 4; ++s) {
                    upper[s] = fmaf(us[j], right[s], upper[s]);
                    lower[s] = fmaf(ls[j], right[s], lower[s]);
                }
            }
        }
    }

    store4<VECTOR>(c, upper, c_row, c_column, m, n);
    store4<VECTOR>(c, lower, c_row + HALF, c_column, m, n);
}

extern "C" __global__ void __launch_bounds__(THREADS)
matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k)
{
    __shared__ __align__(16) float tile_a[TILE][TILE + 4];
    __shared__ __align__(16) float tile_b[TILE][TILE];
    if (k % 4 == 0 && n % 4 == 0)   // then every row begins on a 16-byte boundary
        product<true>(a, b, c, m, n, k, tile_a, tile_b);
    else
        product<false>(a, b, c, m, n, k, tile_a, tile_b);
}
