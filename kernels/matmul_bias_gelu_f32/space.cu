// A space of c = gelu(a * b + bias), row-major single precision: a (m x k), b (k x n), bias (n).
//
// The parameters are macros, defined above this text for each configuration:
//   BM, BN, BK   tile of c that a block makes, and how deep one step along k goes
//   TM, TN       elements of c that a thread holds in registers
//   STAGES       buffers of tiles in shared memory: with 2 a step has one barrier, with 1 it has two
//   SPLIT        blocks that share a tile, each with a run of k, as gridDim.z
//   FUSED        1: bias and activation follow in the same kernel (with splits, in the tile's last block);
//                0: the sums go to memory, and a second launch adds the splits, the bias, and activates
//
//   LARGE        1: the way of large products, as of matmul_large_f32 (fused): 8 x TN elements a thread in squares of
//                4 x 4, fragments read one depth ahead, A turned in shared memory; 0: the way of small ones
//   RESIDENT     with LARGE 1: blocks that a multiprocessor is to hold at once
//
// Splits are added in a fixed order, so that results are the same bits in every run.

constexpr int ACROSS = BN / TN, DOWN = BM / TM, THREADS = ACROSS * DOWN;  // threads along a row, and down a column

__device__ __forceinline__ float gelu(float z) {
    return 0.5f * z * (1.f + erff(z * 0.70710678f));
}

#if LARGE == 0

constexpr int LDA = BK + 4;  // padded: rows of A's tile begin at different banks
constexpr int A_VECTORS = BM * BK / 4, B_VECTORS = BK * BN / 4;
constexpr int A_LOADS = (A_VECTORS + THREADS - 1) / THREADS, B_LOADS = (B_VECTORS + THREADS - 1) / THREADS;

// Four neighbours of a row, zero outside. VECTOR: rows are a multiple of four long, so that four lie inside or outside
// as a whole, and on 16 bytes.
template <bool VECTOR>
__device__ __forceinline__ float4 load4(const float* x, int row, int column, int rows, int columns) {
    float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
    if (row >= rows || column >= columns) return v;
    const float* p = x + static_cast<long long>(row) * columns + column;
    if constexpr (VECTOR) return *reinterpret_cast<const float4*>(p);
    v.x = p[0];
    if (column + 1 < columns) v.y = p[1];
    if (column + 2 < columns) v.z = p[2];
    if (column + 3 < columns) v.w = p[3];
    return v;
}

// One step's tiles of A and B, in registers between global and shared memory.
template <bool VECTOR>
struct Step {
    float4 a[A_LOADS], b[B_LOADS];

    __device__ __forceinline__ void load(const float* A, const float* B, int row0, int column0, int k0, int m, int n,
                                         int k) {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int v = threadIdx.x + i * THREADS;
            if (A_VECTORS % THREADS == 0 || v < A_VECTORS)
                a[i] = load4<VECTOR>(A, row0 + v / (BK / 4), k0 + v % (BK / 4) * 4, m, k);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int v = threadIdx.x + i * THREADS;
            if (B_VECTORS % THREADS == 0 || v < B_VECTORS)
                b[i] = load4<VECTOR>(B, k0 + v / (BN / 4), column0 + v % (BN / 4) * 4, k, n);
        }
    }

    __device__ __forceinline__ void store(float* As, float* Bs) const {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int v = threadIdx.x + i * THREADS;
            if (A_VECTORS % THREADS == 0 || v < A_VECTORS)
                *reinterpret_cast<float4*>(As + v / (BK / 4) * LDA + v % (BK / 4) * 4) = a[i];
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int v = threadIdx.x + i * THREADS;
            if (B_VECTORS % THREADS == 0 || v < B_VECTORS) *reinterpret_cast<float4*>(Bs + v * 4) = b[i];
        }
    }
};

// The thread's sums: rows that lie DOWN apart, columns in groups of four that lie 4 * ACROSS apart.
struct Sums {
    float c[TM][TN];

    __device__ __forceinline__ static int row(int i) { return threadIdx.x / ACROSS + i * DOWN; }

    __device__ __forceinline__ static int column(int j) {
        return threadIdx.x % ACROSS * 4 + j / 4 * 4 * ACROSS + j % 4;
    }

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j) c[i][j] = 0.f;
    }

    __device__ __forceinline__ void multiply(const float* As, const float* Bs) {
#pragma unroll 1
        for (int d = 0; d < BK; d += 4) {
            float4 a[TM];
#pragma unroll
            for (int i = 0; i < TM; ++i) a[i] = *reinterpret_cast<const float4*>(As + row(i) * LDA + d);
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float b[TN];
#pragma unroll
                for (int j = 0; j < TN; j += 4) {
                    const float4 v = *reinterpret_cast<const float4*>(Bs + (d + e) * BN + column(j));
                    b[j] = v.x, b[j + 1] = v.y, b[j + 2] = v.z, b[j + 3] = v.w;
                }
#pragma unroll
                for (int i = 0; i < TM; ++i) {
                    const float left = e == 0 ? a[i].x : e == 1 ? a[i].y : e == 2 ? a[i].z : a[i].w;
#pragma unroll
                    for (int j = 0; j < TN; ++j) c[i][j] += left * b[j];
                }
            }
        }
    }

    // Steps first to last - 1 along k of the tile at row0, column0.
    template <bool VECTOR>
    __device__ __forceinline__ void product(const float* A, const float* B, int row0, int column0, int first, int last,
                                            int m, int n, int k, float* As, float* Bs) {
        Step<VECTOR> step;
        clear();
        step.load(A, B, row0, column0, first * BK, m, n, k);
        for (int s = first; s < last; ++s) {
            float* to_a = As + (STAGES == 2 ? s % 2 * BM * LDA : 0);
            float* to_b = Bs + (STAGES == 2 ? s % 2 * BK * BN : 0);
            if (STAGES == 1 && s > first) __syncthreads();  // with two buffers, the barrier a step before is enough
            step.store(to_a, to_b);
            __syncthreads();
            if (s + 1 < last) step.load(A, B, row0, column0, (s + 1) * BK, m, n, k);
            multiply(to_a, to_b);
        }
    }
};

template <bool VECTOR>
__device__ __forceinline__ void tile(const float* __restrict__ a, const float* __restrict__ b,
                                     const float* __restrict__ bias, float* __restrict__ c, float* partial,
                                     int* tickets, int m, int n, int k) {
    __shared__ __align__(16) float As[STAGES * BM * LDA];
    __shared__ __align__(16) float Bs[STAGES * BK * BN];
    const int steps = (k + BK - 1) / BK, splits = gridDim.z;
    const int row0 = blockIdx.y * BM, column0 = blockIdx.x * BN;
    const long long whole = static_cast<long long>(m) * n;
    Sums sums;
    sums.product<VECTOR>(a, b, row0, column0, blockIdx.z * steps / splits, (blockIdx.z + 1) * steps / splits, m, n, k,
                         As, Bs);
    const auto each = [&](auto body) {
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j) {
                const int row = row0 + Sums::row(i), column = column0 + Sums::column(j);
                if (row < m && column < n) body(sums.c[i][j], static_cast<long long>(row) * n + column, column);
            }
    };
    if (FUSED == 0 || (SPLIT > 1 && splits > 1))
        each([&](float sum, long long at, int) { __stcg(partial + blockIdx.z * whole + at, sum); });
    if constexpr (FUSED == 1) {
        if (SPLIT > 1 && splits > 1) {
            __shared__ int ticket;
            __syncthreads();  // the whole tile is written before one thread says so
            if (threadIdx.x == 0) {
                __threadfence();
                ticket = atomicAdd(tickets + blockIdx.y * gridDim.x + blockIdx.x, 1);
                __threadfence();
            }
            __syncthreads();
            if (ticket != splits - 1) return;
            if (threadIdx.x == 0) tickets[blockIdx.y * gridDim.x + blockIdx.x] = 0;
            each([&](float& sum, long long at, int) {
                sum = 0.f;
                for (int s = 0; s < splits; ++s) sum += __ldcg(partial + s * whole + at);
            });
        }
        each([&](float sum, long long at, int column) { c[at] = gelu(sum + bias[column]); });
    }
}

// For rows of a, b and c that lie on 16 bytes.
extern "C" __global__ void __launch_bounds__(THREADS)
matmul_vectors(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
               float* __restrict__ c, float* partial, int* tickets, int m, int n, int k) {
    tile<true>(a, b, bias, c, partial, tickets, m, n, k);
}

// For every other shape.
extern "C" __global__ void __launch_bounds__(THREADS)
matmul_any(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
           float* __restrict__ c, float* partial, int* tickets, int m, int n, int k) {
    tile<false>(a, b, bias, c, partial, tickets, m, n, k);
}

#if FUSED == 0
extern "C" __global__ void finish(const float* __restrict__ partial, const float* __restrict__ bias,
                                  float* __restrict__ c, int m, int n, int splits) {
    const long long whole = static_cast<long long>(m) * n;
    const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= whole) return;
    float sum = 0.f;
    for (int s = 0; s < splits; ++s) sum += partial[s * whole + at];
    c[at] = gelu(sum + bias[at % n]);
}
#endif

#else  // LARGE

constexpr int WARPS_N = BN / (8 * TN);
constexpr int LDA = BM + 4, A_FLOATS = BK * LDA, B_FLOATS = BK * BN;
constexpr int A_LOADS = BM * BK / 4 / THREADS, B_LOADS = BK * BN / 4 / THREADS;

// Four neighbours of a row, zero outside.
__device__ __forceinline__ float4 load4(const float* __restrict__ x, int row, int column, int rows, int columns) {
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

// Where this thread's vectors of the next step come from, and where they go in a tile: the i-th lies a fixed number of
// rows below the first.
template <bool WHOLE>
struct Source {
    static constexpr int A_DOWN = THREADS / (BK / 4), B_DOWN = THREADS / (BN / 4);
    const float *__restrict__ A, *__restrict__ B;
    int m, n, k, a_row, a_column, b_row, b_column;
    float4 a[A_LOADS], b[B_LOADS];  // between global and shared memory, where A is to lie turned

    __device__ __forceinline__ Source(const float* of_a, const float* of_b, int row0, int column0, int k0, int rows,
                                      int columns, int depth)
        : A(of_a), B(of_b), m(rows), n(columns), k(depth), a_row(row0 + threadIdx.x / (BK / 4)),
          a_column(k0 + threadIdx.x % (BK / 4) * 4), b_row(k0 + threadIdx.x / (BN / 4)),
          b_column(column0 + threadIdx.x % (BN / 4) * 4) {
        if constexpr (WHOLE) A += a_row * k + a_column, B += b_row * n + b_column;
    }

    __device__ __forceinline__ void advance() {
        if constexpr (WHOLE)
            A += BK, B += BK * n;
        else
            a_column += BK, b_row += BK;
    }

    __device__ __forceinline__ void load() {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i)
            a[i] = WHOLE ? *reinterpret_cast<const float4*>(A + i * A_DOWN * k) : load4(A, a_row + i * A_DOWN, a_column, m, k);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i)
            b[i] = WHOLE ? *reinterpret_cast<const float4*>(B + i * B_DOWN * n) : load4(B, b_row + i * B_DOWN, b_column, k, n);
        advance();
    }

    __device__ __forceinline__ void store(float* As, float* Bs) const {
        float* to = As + threadIdx.x % (BK / 4) * 4 * LDA + threadIdx.x / (BK / 4);
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i, to += A_DOWN)
            to[0] = a[i].x, to[LDA] = a[i].y, to[2 * LDA] = a[i].z, to[3 * LDA] = a[i].w;
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i)
            *reinterpret_cast<float4*>(Bs + (threadIdx.x + i * THREADS) * 4) = make_float4(b[i].y, b[i].x, b[i].w, b[i].z);
    }
};

__device__ __forceinline__ void unpack(float* to, float4 v) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }

// What a thread multiplies at one depth: 8 values of A's column, TN of B's row, of which neighbours have changed places: a
// sum and its factor of B then lie in different banks of the register file.
struct Fragment {
    float a[8], b[TN];

    __device__ __forceinline__ void read(const float* As, const float* Bs, int d) {
        unpack(a, *reinterpret_cast<const float4*>(As + d * LDA));
        unpack(a + 4, *reinterpret_cast<const float4*>(As + d * LDA + 16));
#pragma unroll
        for (int j = 0; j < TN; j += 4) unpack(b + j, *reinterpret_cast<const float4*>(Bs + d * BN + j * 8));
    }
};

// Row by row, there and back, odd rows first: workflow/adr/0051-large-products.md says why.
__device__ __forceinline__ void multiply(float (&c)[8][TN], const Fragment& f) {
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
        for (int t = 0; t < TN; ++t) {
            const int i = r ^ 1, j = r % 2 ? TN - 1 - t : t;
            c[i][j] += f.a[i] * f.b[j ^ 1];
        }
}

__device__ __forceinline__ float4 add(float4 x, float4 y) {
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

// One step of the tiles at `a` and `b`, while the next, where there is MORE, goes through registers to the other ones, which
// lie `away` from them.
template <bool MORE, bool WHOLE>
__device__ __forceinline__ void step_by_registers(float (&c)[8][TN], Source<WHOLE>& source, Fragment (&f)[2],
                                                  const float* a, const float* b, float* As, float* Bs, int away) {
    if (MORE) source.load();
#pragma unroll
    for (int d = 0; d < BK; ++d) {
        if (d + 1 < BK) {
            f[(d + 1) % 2].read(a, b, d + 1);
        } else if (MORE) {
            source.store(As, Bs);
            __syncthreads();
            f[0].read(a + away, b + away, 0);
        }
        multiply(c, f[d % 2]);
    }
}

// `steps` steps along k, the next one through registers; the last one by itself, which leaves the compiler free in where the
// loop keeps its sums.
template <bool WHOLE>
__device__ __forceinline__ void sum_by_registers(float (&c)[8][TN], Source<WHOLE>& source, float* As, float* Bs, int row,
                                                 int column, int steps) {
    Fragment f[2];
    source.load();
    source.store(As, Bs);
    __syncthreads();
    const float *a = As + row, *b = Bs + column;
    f[0].read(a, b, 0);
    int away = A_FLOATS + B_FLOATS;
#pragma unroll 1
    for (int s = 1; s < steps; ++s) {
        step_by_registers<true>(c, source, f, a, b, As + away, Bs + away, away);
        a += away, b += away, As += away, Bs += away, away = -away;
    }
    step_by_registers<false>(c, source, f, a, b, As, Bs, away);
}

// Adds the splits of a tile in order; returns true in the block that came last, whose c is the sum.
__device__ __forceinline__ bool join(float (&c)[8][TN], float4* partial, int* tickets) {
    __shared__ int ticket;
    constexpr int FOURS = 2 * TN, ACROSS = TN / 4;
    const int tile = blockIdx.y * gridDim.x + blockIdx.x, splits = gridDim.z;
    float4* of_tile = partial + static_cast<long long>(tile) * splits * FOURS * THREADS + threadIdx.x;
#pragma unroll
    for (int q = 0; q < FOURS; ++q) {
        const float* four = c[q / ACROSS] + q % ACROSS * 4;
        of_tile[(blockIdx.z * FOURS + q) * THREADS] = make_float4(four[0], four[1], four[2], four[3]);
    }
    __syncthreads();  // the whole tile is written before one thread says so
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
        float4 sum = __ldcg(of_tile + q * THREADS);
        for (int s = 1; s < splits; ++s) sum = add(sum, __ldcg(of_tile + (s * FOURS + q) * THREADS));
        unpack(c[q / ACROSS] + q % ACROSS * 4, sum);
    }
    return true;
}

template <bool WHOLE>
__device__ __forceinline__ void tile(const float* a, const float* b, const float* __restrict__ bias, float* c,
                                     float4* partial, int* tickets, int m, int n, int k) {
    __shared__ __align__(16) float tiles[2 * (A_FLOATS + B_FLOATS)];
    float *As = tiles, *Bs = tiles + A_FLOATS;
    const int steps = (k + BK - 1) / BK, splits = gridDim.z, row0 = blockIdx.y * BM, column0 = blockIdx.x * BN;
    const int first = blockIdx.z * steps / splits, last = (blockIdx.z + 1) * steps / splits;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // Neighbours read the same of B, next but one neighbours the same of A: half as many passes of shared memory.
    const int row = warp / WARPS_N * 32 + (lane / 16 * 2 + lane % 2) * 4, column = warp % WARPS_N * 8 * TN + lane / 2 % 8 * 4;
    float sums[8][TN];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) sums[i][j] = 0.f;
    Source<WHOLE> source(a, b, row0, column0, first * BK, m, n, k);
    sum_by_registers(sums, source, As, Bs, row, column, last - first);
    if (SPLIT > 1 && splits > 1 && !join(sums, partial, tickets)) return;
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
        const int at = column0 + column + j * 8;
        const float4 more = WHOLE ? *reinterpret_cast<const float4*>(bias + at) : load4(bias, 0, at, 1, n);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float* four = sums[i] + j;
            const float4 out = make_float4(gelu(four[0] + more.x), gelu(four[1] + more.y), gelu(four[2] + more.z),
                                           gelu(four[3] + more.w));
            store4<WHOLE>(c, out, row0 + row + i / 4 * 16 + i % 4, at, m, n);
        }
    }
}

// For shapes that are whole tiles: vector loads, no bounds to look at.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
matmul_whole(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
             float* __restrict__ c, float4* partial, int* tickets, int m, int n, int k) {
    tile<true>(a, b, bias, c, partial, tickets, m, n, k);
}

// For every other shape.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
matmul_any(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
           float* __restrict__ c, float4* partial, int* tickets, int m, int n, int k) {
    tile<false>(a, b, bias, c, partial, tickets, m, n, k);
}

#endif  // LARGE
