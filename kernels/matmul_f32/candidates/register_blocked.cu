// A matrix product with 8 x 4 sums a thread, two tiles in flight and 16-byte loads where the rows are aligned.
//
// A block of 128 threads computes a 64 x 64 tile of c in steps of 16 along k. While one pair of tiles in shared memory
// is multiplied, the next pair travels from global memory through registers into the other pair, so one barrier a step
// is enough. `matmul_vector` needs k and n divisible by 4 (every row then begins on a 16-byte boundary);
// `matmul_scalar` takes all other shapes.

constexpr int TILE = 64;
constexpr int STEP = 16;
constexpr int THREADS = 128;             // 8 x 16 threads of 8 x 4 elements
constexpr int PADDED = TILE + 4;
constexpr int LOADS = TILE * STEP / THREADS;  // elements of each tile that a thread carries: 8

struct Carried { float a[LOADS], b[LOADS]; };

struct Matrices {
    const float* a;
    const float* b;
    int m, n, k, first_row, first_column;
};

// Element `i` of what this thread carries: four neighbours along k of a, four neighbours along n of b, twice.
__device__ __forceinline__ int a_row(int i) { return (threadIdx.x + (i / 4) * THREADS) / (STEP / 4); }
__device__ __forceinline__ int a_depth(int i) { return (threadIdx.x + (i / 4) * THREADS) % (STEP / 4) * 4 + i % 4; }
__device__ __forceinline__ int b_depth(int i) { return (threadIdx.x + (i / 4) * THREADS) / (TILE / 4); }
__device__ __forceinline__ int b_column(int i) { return (threadIdx.x + (i / 4) * THREADS) % (TILE / 4) * 4 + i % 4; }

template <bool VECTOR>
__device__ __forceinline__ void fetch(const Matrices& of, int depth, Carried& carried)
{
    #pragma unroll
    for (int i = 0; i < LOADS; i += VECTOR ? 4 : 1) {
        const int row = of.first_row + a_row(i), ak = depth + a_depth(i);
        const int bk = depth + b_depth(i), column = of.first_column + b_column(i);
        const bool in_a = row < of.m && ak < of.k, in_b = bk < of.k && column < of.n;
        const float* from_a = of.a + (long long)row * of.k + ak;
        const float* from_b = of.b + (long long)bk * of.n + column;
        if (VECTOR) {   // k and n are multiples of 4: a group of four lies inside or outside as a whole
            const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            const float4 x = in_a ? *reinterpret_cast<const float4*>(from_a) : zero;
            const float4 y = in_b ? *reinterpret_cast<const float4*>(from_b) : zero;
            carried.a[i] = x.x; carried.a[i + 1] = x.y; carried.a[i + 2] = x.z; carried.a[i + 3] = x.w;
            carried.b[i] = y.x; carried.b[i + 1] = y.y; carried.b[i + 2] = y.z; carried.b[i + 3] = y.w;
        } else {
            carried.a[i] = in_a ? *from_a : 0.0f;
            carried.b[i] = in_b ? *from_b : 0.0f;
        }
    }
}

__device__ __forceinline__ void deposit(const Carried& carried, float (*tile_a)[PADDED], float (*tile_b)[TILE])
{
    #pragma unroll
    for (int i = 0; i < LOADS; ++i)
        tile_a[a_depth(i)][a_row(i)] = carried.a[i];
    #pragma unroll
    for (int i = 0; i < LOADS; i += 4)
        *reinterpret_cast<float4*>(&tile_b[b_depth(i)][b_column(i)]) =
            make_float4(carried.b[i], carried.b[i + 1], carried.b[i + 2], carried.b[i + 3]);
}

__device__ __forceinline__ void
multiply(const float (*tile_a)[PADDED], const float (*tile_b)[TILE], float (&sums)[8][4])
{
    const int row = (threadIdx.x / 16) * 8, column = (threadIdx.x % 16) * 4;
    #pragma unroll
    for (int i = 0; i < STEP; ++i) {
        const float4 x = *reinterpret_cast<const float4*>(&tile_a[i][row]);
        const float4 z = *reinterpret_cast<const float4*>(&tile_a[i][row + 4]);
        const float4 y = *reinterpret_cast<const float4*>(&tile_b[i][column]);
        const float left[8] = {x.x, x.y, x.z, x.w, z.x, z.y, z.z, z.w}, right[4] = {y.x, y.y, y.z, y.w};
        #pragma unroll
        for (int r = 0; r < 8; ++r)
            #pragma unroll
            for (int s = 0; s < 4; ++s)
                sums[r][s] = fmaf(left[r], right[s], sums[r][s]);
    }
}

template <bool VECTOR>
__device__ __forceinline__ void store(float* c, const Matrices& of, const float (&sums)[8][4])
{
    const int row = of.first_row + (threadIdx.x / 16) * 8, column = of.first_column + (threadIdx.x % 16) * 4;
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        if (row + r >= of.m) return;
        float* to = c + (long long)(row + r) * of.n + column;
        if (VECTOR) {
            if (column < of.n)
                *reinterpret_cast<float4*>(to) = make_float4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]);
        } else {
            #pragma unroll
            for (int s = 0; s < 4; ++s)
                if (column + s < of.n) to[s] = sums[r][s];
        }
    }
}

template <bool VECTOR>
__device__ __forceinline__ void product(const float* a, const float* b, float* c, int m, int n, int k)
{
    __shared__ __align__(16) float tile_a[2][STEP][PADDED];
    __shared__ __align__(16) float tile_b[2][STEP][TILE];
    const Matrices of = {a, b, m, n, k, (int)blockIdx.y * TILE, (int)blockIdx.x * TILE};
    float sums[8][4] = {};
    Carried carried;

    fetch<VECTOR>(of, 0, carried);
    deposit(carried, tile_a[0], tile_b[0]);
    __syncthreads();
    int now = 0;
    for (int depth = STEP; depth < k; depth += STEP) {
        fetch<VECTOR>(of, depth, carried);
        multiply(tile_a[now], tile_b[now], sums);
        deposit(carried, tile_a[1 - now], tile_b[1 - now]);
        __syncthreads();
        now = 1 - now;
    }
    multiply(tile_a[now], tile_b[now], sums);
    store<VECTOR>(c, of, sums);
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
