// A matrix product with 4 x 4 sums a thread, whose block shares each step along k out to four slices of threads.
//
// Larger register blocks need fewer values from shared memory: 8 for 16 multiply-adds. Alone they would leave a 32 x 32
// tile of c with 64 threads, too few to hide latency. So four slices of 64 threads compute the same tile, each from its
// own quarter of every step along k, and their sums are added through shared memory at the end, always in the same
// order. Meanwhile the next step's tiles travel from global memory through registers into the other of two pairs of
// tiles, so that loads overlap arithmetic and one barrier a step is enough.
//
// `matmul_vector` needs k and n divisible by 4 (every row then begins on a 16-byte boundary); `matmul_scalar` takes all
// other shapes. What lies beyond the matrices is read as zero and never written.

constexpr int TILE = 32;                     // rows and columns of c a block, and its step along k
constexpr int SLICES = 4;
constexpr int DEPTH = TILE / SLICES;         // of a step, for one slice
constexpr int SLICE_THREADS = 64;            // 8 x 8 threads of 4 x 4 elements
constexpr int THREADS = SLICES * SLICE_THREADS;  // also the number of groups of four neighbours in a tile
constexpr int ROWS_APART = 8;                // between the four rows of a thread
constexpr int PADDED = TILE + 4;             // the rows of a that a warp reads at once lie in different banks

struct Tiles {
    float a[TILE][PADDED], b[TILE][TILE];
};

union Shared {
    Tiles tiles[2];
    float sums[SLICES][TILE][TILE];          // when the last tiles are done
};

// Four neighbours of a row. VECTOR: they lie on 16 bytes, inside the matrix or outside as a whole.
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
__device__ __forceinline__ void store4(float* x, float4 four, int row, int column, int rows, int columns)
{
    float* to = x + (long long)row * columns + column;
    if (VECTOR) {
        if (row < rows && column < columns) *reinterpret_cast<float4*>(to) = four;
    } else if (row < rows) {
        if (column < columns) to[0] = four.x;
        if (column + 1 < columns) to[1] = four.y;
        if (column + 2 < columns) to[2] = four.z;
        if (column + 3 < columns) to[3] = four.w;
    }
}

// Add what one slice's quarter of a step gives: `row` and `column` are the thread's first element.
__device__ __forceinline__ void multiply(const Tiles& tiles, int first_depth, int row, int column, float (&sums)[4][4])
{
    #pragma unroll
    for (int i = 0; i < DEPTH; i += 4) {
        float left[4][4];
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            const float4 x = *reinterpret_cast<const float4*>(&tiles.a[row + r * ROWS_APART][first_depth + i]);
            left[r][0] = x.x; left[r][1] = x.y; left[r][2] = x.z; left[r][3] = x.w;
        }
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float4 y = *reinterpret_cast<const float4*>(&tiles.b[first_depth + i + j][column]);
            const float right[4] = {y.x, y.y, y.z, y.w};
            #pragma unroll
            for (int r = 0; r < 4; ++r)
                #pragma unroll
                for (int s = 0; s < 4; ++s)
                    sums[r][s] = fmaf(left[r][j], right[s], sums[r][s]);
        }
    }
}

template <bool VECTOR>
__device__ __forceinline__ void product(const float* __restrict__ a, const float* __restrict__ b,
                                        float* __restrict__ c, int m, int n, int k)
{
    __shared__ __align__(16) Shared shared;
    // Of every tile this thread loads or stores one group of four neighbours; within its slice it sums 4 x 4 elements.
    const int tile_row = threadIdx.x / 8, tile_column = threadIdx.x % 8 * 4;
    const int c_row = blockIdx.y * TILE + tile_row, c_column = blockIdx.x * TILE + tile_column;
    const int slice = threadIdx.x / SLICE_THREADS, row = threadIdx.x % SLICE_THREADS / 8;
    float sums[4][4] = {};

    float4 next_a = load4<VECTOR>(a, c_row, tile_column, m, k);
    float4 next_b = load4<VECTOR>(b, tile_row, c_column, k, n);
    int now = 0;
    for (int depth = 0; depth < k; depth += TILE) {
        *reinterpret_cast<float4*>(&shared.tiles[now].a[tile_row][tile_column]) = next_a;
        *reinterpret_cast<float4*>(&shared.tiles[now].b[tile_row][tile_column]) = next_b;
        __syncthreads();   // the other pair, which is written next, was last read before this barrier
        next_a = load4<VECTOR>(a, c_row, depth + TILE + tile_column, m, k);
        next_b = load4<VECTOR>(b, depth + TILE + tile_row, c_column, k, n);
        multiply(shared.tiles[now], slice * DEPTH, row, tile_column, sums);
        now = 1 - now;
    }

    __syncthreads();
    #pragma unroll
    for (int r = 0; r < 4; ++r)
        *reinterpret_cast<float4*>(&shared.sums[slice][row + r * ROWS_APART][tile_column]) =
            make_float4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]);
    __syncthreads();
    float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    #pragma unroll
    for (int s = 0; s < SLICES; ++s) {
        const float4 part = *reinterpret_cast<const float4*>(&shared.sums[s][tile_row][tile_column]);
        total = make_float4(total.x + part.x, total.y + part.y, total.z + part.z, total.w + part.w);
    }
    store4<VECTOR>(c, total, c_row, c_column, m, n);
}

extern "C" __global__ void __launch_bounds__(THREADS)
matmul_vector(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k)
{
    product<true>(a, b, c, m, n, k);
}

extern "C" __global__ void __launch_bounds__(THREADS)
matmul_scalar(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k)
{
    product<false>(a, b, c, m, n, k);
}
