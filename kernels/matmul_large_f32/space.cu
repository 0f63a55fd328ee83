// A space of row-major single-precision matrix products of large matrices, C (m x n) = A (m x k) * B (k x n).
//
// The parameters are macros, defined above this text for each configuration:
//   BM, BN, BK   tile of C that a block makes, and how deep one step along k goes
//   RESIDENT     blocks that a multiprocessor is to hold at once: more leave each thread fewer registers
//   SPLIT        blocks that share one tile of C at most, as gridDim.y
//   BAND         blocks take tiles of BAND rows of tiles together, column by column, for the level-2 cache
//   AHEAD        1: the fragments of the next depth are read while this one is multiplied
//
// A thread makes 8 x 8 elements, in four squares of 4 x 4; a warp 32 x 64. A lies turned in shared memory, so that both
// fragments are two vectors each. Loads of the next step are in flight while this one is computed (two tiles).
// Sums over splits are taken in a fixed order by the block with the tile's last ticket, so that bits do not differ.

constexpr int THREADS = BM / 8 * (BN / 8), WARPS_N = BN / 64;
constexpr int LDA = BM + 4, A_FLOATS = BK * LDA, B_FLOATS = BK * BN;
constexpr int A_LOADS = BM * BK / 4 / THREADS, B_LOADS = BK * BN / 4 / THREADS;

// Four neighbours of a row. WHOLE: they exist and lie on 16 bytes; else each is looked at, and is zero outside.
template <bool WHOLE>
__device__ __forceinline__ float4 load4(const float* __restrict__ x, int row, int column, int rows, int columns) {
    if constexpr (WHOLE) return *reinterpret_cast<const float4*>(x + row * columns + column);
    float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
    if (row >= rows) return v;
    const float* p = x + row * columns + column;
    if (column < columns) v.x = p[0];
    if (column + 1 < columns) v.y = p[1];
    if (column + 2 < columns) v.z = p[2];
    if (column + 3 < columns) v.w = p[3];
    return v;
}

template <bool WHOLE>
__device__ __forceinline__ void store4(float* x, float4 v, int row, int column, int rows, int columns) {
    float* p = x + row * columns + column;
    if constexpr (WHOLE) {
        *reinterpret_cast<float4*>(p) = v;
    } else {
        if (row >= rows) return;
        if (column < columns) p[0] = v.x;
        if (column + 1 < columns) p[1] = v.y;
        if (column + 2 < columns) p[2] = v.z;
        if (column + 3 < columns) p[3] = v.w;
    }
}

// One step's tiles, in registers between global and shared memory.
template <bool WHOLE>
struct Step {
    float4 a[A_LOADS], b[B_LOADS];

    __device__ __forceinline__ void load(const float* __restrict__ A, const float* __restrict__ B, int row0, int column0,
                                         int k0, int m, int n, int k) {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int v = threadIdx.x + i * THREADS;
            a[i] = load4<WHOLE>(A, row0 + v / (BK / 4), k0 + v % (BK / 4) * 4, m, k);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int v = threadIdx.x + i * THREADS;
            b[i] = load4<WHOLE>(B, k0 + v / (BN / 4), column0 + v % (BN / 4) * 4, k, n);
        }
    }

    __device__ __forceinline__ void store(float* As, float* Bs) const {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int v = threadIdx.x + i * THREADS;
            float* to = As + v % (BK / 4) * 4 * LDA + v / (BK / 4);
            to[0] = a[i].x, to[LDA] = a[i].y, to[2 * LDA] = a[i].z, to[3 * LDA] = a[i].w;
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i)
            *reinterpret_cast<float4*>(Bs + (threadIdx.x + i * THREADS) * 4) = b[i];
    }
};

// What a thread multiplies at one depth: 8 values of A's column, 8 of B's row.
struct Fragment {
    float a[8], b[8];

    __device__ __forceinline__ void read(const float* As, const float* Bs, int row, int column, int d) {
        const float4 a0 = *reinterpret_cast<const float4*>(As + d * LDA + row);
        const float4 a1 = *reinterpret_cast<const float4*>(As + d * LDA + row + 16);
        const float4 b0 = *reinterpret_cast<const float4*>(Bs + d * BN + column);
        const float4 b1 = *reinterpret_cast<const float4*>(Bs + d * BN + column + 32);
        a[0] = a0.x, a[1] = a0.y, a[2] = a0.z, a[3] = a0.w, a[4] = a1.x, a[5] = a1.y, a[6] = a1.z, a[7] = a1.w;
        b[0] = b0.x, b[1] = b0.y, b[2] = b0.z, b[3] = b0.w, b[4] = b1.x, b[5] = b1.y, b[6] = b1.z, b[7] = b1.w;
    }
};

__device__ __forceinline__ void multiply(float (&c)[8][8], const Fragment& f) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) c[i][j] += f.a[i] * f.b[j];
}

__device__ __forceinline__ float4 add(float4 x, float4 y) {
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

// Adds the splits' partial tiles in order; returns true in the block that finished the tile last, whose c is the sum.
__device__ __forceinline__ bool join(float (&c)[8][8], float4* partial, int* tickets, int tile) {
    __shared__ int ticket;
    const int splits = gridDim.y;
    float4* of_tile = partial + static_cast<long long>(tile) * splits * 16 * THREADS + threadIdx.x;
#pragma unroll
    for (int q = 0; q < 16; ++q)
        of_tile[(blockIdx.y * 16 + q) * THREADS] =
            make_float4(c[q / 2][q % 2 * 4], c[q / 2][q % 2 * 4 + 1], c[q / 2][q % 2 * 4 + 2], c[q / 2][q % 2 * 4 + 3]);
    __syncthreads();  // every thread's part is written before thread 0 makes it visible and says so
    if (threadIdx.x == 0) {
        __threadfence();
        ticket = atomicAdd(tickets + tile, 1);
        __threadfence();
    }
    __syncthreads();
    if (ticket != splits - 1) return false;
    if (threadIdx.x == 0) tickets[tile] = 0;
#pragma unroll
    for (int q = 0; q < 16; ++q) {
        float4 sum = of_tile[q * THREADS];
        for (int s = 1; s < splits; ++s) sum = add(sum, of_tile[(s * 16 + q) * THREADS]);
        c[q / 2][q % 2 * 4] = sum.x, c[q / 2][q % 2 * 4 + 1] = sum.y;
        c[q / 2][q % 2 * 4 + 2] = sum.z, c[q / 2][q % 2 * 4 + 3] = sum.w;
    }
    return true;
}

template <bool WHOLE>
__device__ __forceinline__ void product(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                                        int m, int n, int k, float4* partial, int* tickets) {
    __shared__ __align__(16) float As[2][A_FLOATS];
    __shared__ __align__(16) float Bs[2][B_FLOATS];
    const int across = (n + BN - 1) / BN, down = (m + BM - 1) / BM, steps = (k + BK - 1) / BK, splits = gridDim.y;
    const int band = blockIdx.x / (BAND * across), inside = blockIdx.x % (BAND * across);
    const int height = min(BAND, down - band * BAND);  // the last band may be lower
    const int row0 = (band * BAND + inside % height) * BM, column0 = inside / height * BN;
    const int first = blockIdx.y * steps / splits, last = (blockIdx.y + 1) * steps / splits;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / WARPS_N * 32 + lane / 8 * 4, column = warp % WARPS_N * 64 + lane % 8 * 4;
    float c[8][8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) c[i][j] = 0.f;
    Step<WHOLE> step;
    Fragment f[1 + AHEAD];
    step.load(A, B, row0, column0, first * BK, m, n, k);
    step.store(As[0], Bs[0]);
    __syncthreads();
    if constexpr (AHEAD == 1) f[0].read(As[0], Bs[0], row, column, 0);
    int at = 0;
    for (int s = first; s < last; ++s, at ^= 1) {
        const bool more = s + 1 < last;
        if (more) step.load(A, B, row0, column0, (s + 1) * BK, m, n, k);
#pragma unroll
        for (int d = 0; d < BK; ++d) {
            if constexpr (AHEAD == 1) {
                if (d + 1 < BK) {
                    f[(d + 1) % 2].read(As[at], Bs[at], row, column, d + 1);
                } else if (more) {
                    step.store(As[at ^ 1], Bs[at ^ 1]);
                    __syncthreads();
                    f[0].read(As[at ^ 1], Bs[at ^ 1], row, column, 0);
                }
                multiply(c, f[d % 2]);
            } else {
                f[0].read(As[at], Bs[at], row, column, d);
                multiply(c, f[0]);
            }
        }
        if (AHEAD == 0 && more) {
            step.store(As[at ^ 1], Bs[at ^ 1]);
            __syncthreads();
        }
    }
    if (SPLIT > 1 && splits > 1 && !join(c, partial, tickets, blockIdx.x)) return;
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; j += 4)
            store4<WHOLE>(C, make_float4(c[i][j], c[i][j + 1], c[i][j + 2], c[i][j + 3]),
                          row0 + row + i / 4 * 16 + i % 4, column0 + column + j * 8, m, n);
}

// For shapes that are whole tiles: vector loads, no bounds to look at.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
matmul_whole(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k,
             float4* partial, int* tickets) {
    product<true>(a, b, c, m, n, k, partial, tickets);
}

// For every other shape.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
matmul_any(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k,
           float4* partial, int* tickets) {
    product<false>(a, b, c, m, n, k, partial, tickets);
}
