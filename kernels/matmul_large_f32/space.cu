// A space of row-major single-precision matrix products of large matrices, C (m x n) = A (m x k) * B (k x n).
//
// The parameters are macros, defined above this text for each configuration:
//   BM, BN, BK   tile of C that a block makes, and how deep one step along k goes
//   TN           a thread makes 8 x TN elements, 8 or 16
//   STAGES       1: the next step goes through registers, and A lies turned in shared memory (two tiles);
//                more: so many tiles, brought by cp.async, and A lies as it is, read four depths at once
//   RESIDENT     blocks that a multiprocessor is to hold at once: more leave each thread fewer registers
//   SPLIT        blocks that share one tile of C at most, as gridDim.y
//   BAND         blocks take tiles of BAND rows of tiles together, column by column, for the level-2 cache
//   AHEAD        1: the fragments of the next depth are read while this one is multiplied
//
// A thread makes its elements in squares of 4 x 4, or in rows of 4 where A lies as it is; a warp 32 x 8 * TN.
// Sums over splits are taken in a fixed order by the block with the tile's last ticket, so that bits do not differ.

constexpr int THREADS = BM / 8 * (BN / TN), WARPS_N = BN / (8 * TN), TILES = STAGES == 1 ? 2 : STAGES;
constexpr int LDA = STAGES == 1 ? BM + 4 : BK + 4, A_FLOATS = STAGES == 1 ? BK * LDA : BM * LDA, B_FLOATS = BK * BN;
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

// One step's tiles by cp.async, and the end of a group. Without WHOLE word by word, zero outside.
template <bool WHOLE>
__device__ __forceinline__ void bring4(float* to, const float* __restrict__ x, int row, int column, int rows,
                                       int columns) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    if constexpr (WHOLE) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(x + row * columns + column) : "memory");
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const bool inside = row < rows && column + e < columns;
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at + 4 * e),
                         "l"(x + (inside ? row * columns + column + e : 0)), "r"(inside ? 4 : 0)
                         : "memory");
        }
    }
}

template <bool WHOLE>
__device__ __forceinline__ void bring(float* As, float* Bs, const float* __restrict__ A, const float* __restrict__ B,
                                      int row0, int column0, int k0, int m, int n, int k) {
#pragma unroll
    for (int i = 0; i < A_LOADS; ++i) {
        const int v = threadIdx.x + i * THREADS, row = v / (BK / 4), d = v % (BK / 4) * 4;
        bring4<WHOLE>(As + row * LDA + d, A, row0 + row, k0 + d, m, k);
    }
#pragma unroll
    for (int i = 0; i < B_LOADS; ++i) {
        const int v = threadIdx.x + i * THREADS, d = v / (BN / 4), column = v % (BN / 4) * 4;
        bring4<WHOLE>(Bs + d * BN + column, B, k0 + d, column0 + column, k, n);
    }
}

__device__ __forceinline__ void unpack(float* to, float4 v) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }

__device__ __forceinline__ void read_b(float (&b)[TN], const float* Bs, int column, int d) {
#pragma unroll
    for (int j = 0; j < TN; j += 4) unpack(b + j, *reinterpret_cast<const float4*>(Bs + d * BN + column + j * 8));
}

// What a thread multiplies at one depth: 8 values of A's column, TN of B's row. A lies turned.
struct Fragment {
    float a[8], b[TN];

    __device__ __forceinline__ void read(const float* As, const float* Bs, int row, int column, int d) {
        unpack(a, *reinterpret_cast<const float4*>(As + d * LDA + row));
        unpack(a + 4, *reinterpret_cast<const float4*>(As + d * LDA + row + 16));
        read_b(b, Bs, column, d);
    }
};

__device__ __forceinline__ void multiply(float (&c)[8][TN], const Fragment& f) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) c[i][j] += f.a[i] * f.b[j];
}

// A whole step where A lies as it is: rows `row + 4 * i`, which lie in different banks for the rows of a warp.
__device__ __forceinline__ void multiply_step(float (&c)[8][TN], const float* As, const float* Bs, int row, int column) {
#pragma unroll
    for (int d = 0; d < BK; d += 4) {
        float a[8][4];
#pragma unroll
        for (int i = 0; i < 8; ++i) unpack(a[i], *reinterpret_cast<const float4*>(As + (row + 4 * i) * LDA + d));
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            float b[TN];
            read_b(b, Bs, column, d + e);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) c[i][j] += a[i][e] * b[j];
        }
    }
}

__device__ __forceinline__ float4 add(float4 x, float4 y) {
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

// Adds the splits' partial tiles in order; returns true in the block that finished the tile last, whose c is the sum.
__device__ __forceinline__ bool join(float (&c)[8][TN], float4* partial, int* tickets, int tile) {
    __shared__ int ticket;
    constexpr int FOURS = 2 * TN, ACROSS = TN / 4;
    const int splits = gridDim.y;
    float4* of_tile = partial + static_cast<long long>(tile) * splits * FOURS * THREADS + threadIdx.x;
#pragma unroll
    for (int q = 0; q < FOURS; ++q) {
        const float* four = c[q / ACROSS] + q % ACROSS * 4;
        of_tile[(blockIdx.y * FOURS + q) * THREADS] = make_float4(four[0], four[1], four[2], four[3]);
    }
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
    for (int q = 0; q < FOURS; ++q) {
        float4 sum = of_tile[q * THREADS];
        for (int s = 1; s < splits; ++s) sum = add(sum, of_tile[(s * FOURS + q) * THREADS]);
        unpack(c[q / ACROSS] + q % ACROSS * 4, sum);
    }
    return true;
}

// Steps `first` to `last` along k, the next one through registers.
template <bool WHOLE>
__device__ __forceinline__ void sum_by_registers(float (&c)[8][TN], float* As, float* Bs, const float* __restrict__ A,
                                                 const float* __restrict__ B, int row0, int column0, int row, int column,
                                                 int first, int last, int m, int n, int k) {
    Step<WHOLE> step;
    Fragment f[1 + AHEAD];
    step.load(A, B, row0, column0, first * BK, m, n, k);
    step.store(As, Bs);
    __syncthreads();
    if constexpr (AHEAD == 1) f[0].read(As, Bs, row, column, 0);
    int at = 0;
    for (int s = first; s < last; ++s, at ^= 1) {
        const bool more = s + 1 < last;
        const float *a = As + at * A_FLOATS, *b = Bs + at * B_FLOATS;
        float *next_a = As + (at ^ 1) * A_FLOATS, *next_b = Bs + (at ^ 1) * B_FLOATS;
        if (more) step.load(A, B, row0, column0, (s + 1) * BK, m, n, k);
#pragma unroll
        for (int d = 0; d < BK; ++d) {
            if constexpr (AHEAD == 1) {
                if (d + 1 < BK) {
                    f[(d + 1) % 2].read(a, b, row, column, d + 1);
                } else if (more) {
                    step.store(next_a, next_b);
                    __syncthreads();
                    f[0].read(next_a, next_b, row, column, 0);
                }
                multiply(c, f[d % 2]);
            } else {
                f[0].read(a, b, row, column, d);
                multiply(c, f[0]);
            }
        }
        if (AHEAD == 0 && more) {
            step.store(next_a, next_b);
            __syncthreads();
        }
    }
}

// The same, STAGES - 1 steps on their way by cp.async.
template <bool WHOLE>
__device__ __forceinline__ void sum_by_copies(float (&c)[8][TN], float* As, float* Bs, const float* __restrict__ A,
                                              const float* __restrict__ B, int row0, int column0, int row, int column,
                                              int first, int last, int m, int n, int k) {
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (first + s < last)
            bring<WHOLE>(As + s * A_FLOATS, Bs + s * B_FLOATS, A, B, row0, column0, (first + s) * BK, m, n, k);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    int at = 0, to = STAGES - 1;
    for (int s = first; s < last; ++s) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES > 1 ? STAGES - 2 : 0) : "memory");
        __syncthreads();  // step s is there for all, and nobody reads the tile that is brought next
        const int next = s + STAGES - 1;
        if (next < last) bring<WHOLE>(As + to * A_FLOATS, Bs + to * B_FLOATS, A, B, row0, column0, next * BK, m, n, k);
        asm volatile("cp.async.commit_group;" ::: "memory");
        multiply_step(c, As + at * A_FLOATS, Bs + at * B_FLOATS, row, column);
        at = at + 1 == STAGES ? 0 : at + 1, to = to + 1 == STAGES ? 0 : to + 1;
    }
}

template <bool WHOLE>
__device__ __forceinline__ void product(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                                        int m, int n, int k, float4* partial, int* tickets) {
    extern __shared__ __align__(16) float tiles[];  // more than 48 KiB have to be asked for by the launch
    float *As = tiles, *Bs = tiles + TILES * A_FLOATS;
    const int across = (n + BN - 1) / BN, down = (m + BM - 1) / BM, steps = (k + BK - 1) / BK, splits = gridDim.y;
    const int band = blockIdx.x / (BAND * across), inside = blockIdx.x % (BAND * across);
    const int height = min(BAND, down - band * BAND);  // the last band may be lower
    const int row0 = (band * BAND + inside % height) * BM, column0 = inside / height * BN;
    const int first = blockIdx.y * steps / splits, last = (blockIdx.y + 1) * steps / splits;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / WARPS_N * 32 + lane / 8 * (STAGES == 1 ? 4 : 1);
    const int column = warp % WARPS_N * 8 * TN + lane % 8 * 4;
    float c[8][TN];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) c[i][j] = 0.f;
    if constexpr (STAGES == 1)
        sum_by_registers<WHOLE>(c, As, Bs, A, B, row0, column0, row, column, first, last, m, n, k);
    else
        sum_by_copies<WHOLE>(c, As, Bs, A, B, row0, column0, row, column, first, last, m, n, k);
    if (SPLIT > 1 && splits > 1 && !join(c, partial, tickets, blockIdx.x)) return;
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            store4<WHOLE>(C, make_float4(c[i][j], c[i][j + 1], c[i][j + 2], c[i][j + 3]),
                          row0 + row + (STAGES == 1 ? i / 4 * 16 + i % 4 : 4 * i), column0 + column + j * 8, m, n);
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
