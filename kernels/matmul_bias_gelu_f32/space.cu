// A space of c = gelu(a * b + bias), row-major single precision: a (m x k), b (k x n), bias (n).
//
// The parameters are macros, defined above this text for each configuration:
//   LARGE        1: the way of matmul_large_f32, for large products; 0: that of matmul_f32, for small ones
//   BM, BN, BK   tile of c that a block makes, and how deep one step along k goes
//   TM, TN       elements of c that a thread holds in registers; with LARGE 8 x TN in squares of 4 x 4
//   STAGES       1: load, then compute; 2: the next step's loads are in flight while this one is computed. With LARGE
//                1: the next step goes through registers to the other of two tiles; more: so many, brought by cp.async
//   SLICES       groups of threads of one block that share a step: each takes BK / SLICES of its depth
//   SPLIT        blocks that share one tile at most; the last one adds their parts
//   RESIDENT     with LARGE: blocks that a multiprocessor is to hold at once
//   BAND         with LARGE: blocks take tiles of BAND rows of tiles together, for the level-2 cache
//   SQUARES      with LARGE: products are taken in squares of 2 x 2, else row by row, there and back
//   FUSED        1: bias and activation follow in the same kernel; 0: a second launch reads the product and activates
//
// Slices and splits are added in a fixed order, so that results are the same bits in every run. Why the loop of LARGE is
// as it is: workflow/adr/0051-large-products.md.

__device__ __forceinline__ float4 add(float4 x, float4 y) {
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

__device__ __forceinline__ void unpack(float* to, float4 v) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }

// Four neighbours of a row. WHOLE: they exist and lie on 16 bytes; else each is looked at, and is zero outside.
template <bool WHOLE>
__device__ __forceinline__ float4 load4(const float* x, int row, int column, int rows, int columns) {
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

__device__ __forceinline__ float gelu(float z) {
    return 0.5f * z * (1.f + erff(z * 0.70710678f));
}

// Four sums of a row to c, by way of their bias and activation where these are done here.
template <bool WHOLE>
__device__ __forceinline__ void finish4(float* c, float4 bias, float4 v, int row, int column, int m, int n) {
    if constexpr (FUSED == 1) {
        v = add(v, bias);
        v = make_float4(gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w));
    }
    store4<WHOLE>(c, v, row, column, m, n);
}

#define PARAMETERS                                                                                                  \
    const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ bias, float *__restrict__ c, \
        float4 *partial, int *tickets, int m, int n, int k

#if LARGE == 0

constexpr int LANES_M = 4, LANES_N = 8;  // a warp covers 4 x 8 threads: few distinct addresses a shared load
constexpr int WARPS_M = BM / (LANES_M * TM), WARPS_N = BN / (LANES_N * TN);
constexpr int SLICE_THREADS = 32 * WARPS_M * WARPS_N, THREADS = SLICES * SLICE_THREADS;
constexpr int DEPTH = BK / SLICES;  // steps along k of one thread
constexpr int UNROLL = TM * TN >= 64 ? 1 : TM * TN >= 32 ? 2 : 4;  // longer straight code costs compile time only
constexpr int LDA = BK + 4;         // padded: lanes of a warp read rows of A at different banks
constexpr int A_FLOATS = BM * LDA, B_FLOATS = BK * BN;
constexpr int TILE_FLOATS = STAGES * (A_FLOATS + B_FLOATS), SUM_FLOATS = SLICES > 1 ? SLICES * BM * BN : 0;
constexpr int SHARED_FLOATS = TILE_FLOATS > SUM_FLOATS ? TILE_FLOATS : SUM_FLOATS;
constexpr int A_VECTORS = BM * BK / 4, B_VECTORS = BK * BN / 4;
constexpr int A_LOADS = (A_VECTORS + THREADS - 1) / THREADS, B_LOADS = (B_VECTORS + THREADS - 1) / THREADS;
constexpr int CHUNKS = BM * BN / 4 / THREADS;  // groups of four neighbours of C that a thread finishes
constexpr bool EARLY = CHUNKS <= 2;

struct Place {
    int row, column;
};

// One step's tiles of A and B, in registers between global and shared memory.
template <bool WHOLE>
struct Step {
    float4 a[A_LOADS], b[B_LOADS];

    __device__ __forceinline__ void load(const float* A, const float* B, int column0, int k0, int m, int n, int k) {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int v = threadIdx.x + i * THREADS;
            if (A_VECTORS % THREADS == 0 || v < A_VECTORS)
                a[i] = load4<WHOLE>(A, blockIdx.y * BM + v / (BK / 4), k0 + v % (BK / 4) * 4, m, k);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int v = threadIdx.x + i * THREADS;
            if (B_VECTORS % THREADS == 0 || v < B_VECTORS)
                b[i] = load4<WHOLE>(B, k0 + v / (BN / 4), column0 + v % (BN / 4) * 4, k, n);
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

// The thread's elements: rows lie LANES_M apart, columns come in groups of four that lie 4 * LANES_N apart.
struct Fragment {
    float c[TM][TN];
    int row, column, depth;

    __device__ __forceinline__ Fragment() {
        const int lane = threadIdx.x % 32, warp = threadIdx.x % SLICE_THREADS / 32;
        row = warp / WARPS_N * (LANES_M * TM) + lane / LANES_N;
        column = warp % WARPS_N * (LANES_N * TN) + lane % LANES_N * 4;
        depth = threadIdx.x / SLICE_THREADS * DEPTH;
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j) c[i][j] = 0.f;
    }

    __device__ __forceinline__ void multiply(const float* As, const float* Bs) {
#pragma unroll UNROLL
        for (int d = 0; d < DEPTH; d += 4) {
            float a[TM][4], b[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) {
                const float4 v = *reinterpret_cast<const float4*>(As + (row + i * LANES_M) * LDA + depth + d);
                a[i][0] = v.x, a[i][1] = v.y, a[i][2] = v.z, a[i][3] = v.w;
            }
#pragma unroll
            for (int e = 0; e < 4; ++e) {
#pragma unroll
                for (int j = 0; j < TN; j += 4) {
                    const float* p = Bs + (depth + d + e) * BN + column + j * LANES_N;
                    const float4 v = *reinterpret_cast<const float4*>(p);
                    b[j] = v.x, b[j + 1] = v.y, b[j + 2] = v.z, b[j + 3] = v.w;
                }
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int j = 0; j < TN; ++j) c[i][j] += a[i][e] * b[j];
            }
        }
    }

    __device__ __forceinline__ float4 chunk(int i, int j) const {
        return make_float4(c[i][j], c[i][j + 1], c[i][j + 2], c[i][j + 3]);
    }
};

// What a thread finishes: its own elements, or with slices an equal share of the block's tile.
struct Finished {
    float4 chunk[CHUNKS];

    __device__ __forceinline__ static Place place(const Fragment& f, int q) {
        if constexpr (SLICES == 1) return {f.row + q / (TN / 4) * LANES_M, f.column + q % (TN / 4) * 4 * LANES_N};
        const int at = (q * THREADS + threadIdx.x) * 4;
        return {at / BN, at % BN};
    }

    __device__ __forceinline__ Finished(const Fragment& f, float* shared) {
        if constexpr (SLICES == 1) {
#pragma unroll
            for (int q = 0; q < CHUNKS; ++q) chunk[q] = f.chunk(q / (TN / 4), q % (TN / 4) * 4);
        } else {
            float* mine = shared + threadIdx.x / SLICE_THREADS * (BM * BN) + f.row * BN + f.column;
            __syncthreads();  // the last step's tiles lie in the same memory
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; j += 4)
                    *reinterpret_cast<float4*>(mine + i * LANES_M * BN + j * LANES_N) = f.chunk(i, j);
            __syncthreads();
#pragma unroll
            for (int q = 0; q < CHUNKS; ++q) {
                const float* p = shared + (q * THREADS + threadIdx.x) * 4;
                chunk[q] = *reinterpret_cast<const float4*>(p);
#pragma unroll
                for (int s = 1; s < SLICES; ++s)
                    chunk[q] = add(chunk[q], *reinterpret_cast<const float4*>(p + s * BM * BN));
            }
        }
    }

    // Returns true in the block that finished the tile last; its chunks then hold the whole sum.
    __device__ __forceinline__ bool join(float4* partial, int* tickets) {
        __shared__ int ticket;
        const int tile = blockIdx.y * gridDim.x + blockIdx.x, splits = gridDim.z;
        float4* of_tile = partial + tile * splits * CHUNKS * THREADS + threadIdx.x;
#pragma unroll
        for (int q = 0; q < CHUNKS; ++q) of_tile[(blockIdx.z * CHUNKS + q) * THREADS] = chunk[q];
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
        for (int q = 0; q < CHUNKS; ++q) chunk[q] = of_tile[q * THREADS];
        for (int s = 1; s < splits; ++s)
#pragma unroll
            for (int q = 0; q < CHUNKS; ++q) chunk[q] = add(chunk[q], of_tile[(s * CHUNKS + q) * THREADS]);
        return true;
    }
};

// The block's part of the tile whose columns begin at `column0`: steps first to last - 1 along k.
template <bool WHOLE>
__device__ __forceinline__ void sum_steps(Fragment& f, const float* A, const float* B, int column0, int first, int last,
                                          int m, int n, int k, float* shared) {
    float *As = shared, *Bs = shared + STAGES * A_FLOATS;
    Step<WHOLE> step;
    if constexpr (STAGES == 1) {
        for (int s = first; s < last; ++s) {
            step.load(A, B, column0, s * BK, m, n, k);
            if (s > first) __syncthreads();
            step.store(As, Bs);
            __syncthreads();
            f.multiply(As, Bs);
        }
    } else {
        int at = 0;
        step.load(A, B, column0, first * BK, m, n, k);
        step.store(As, Bs);
        __syncthreads();
        for (int s = first; s < last; ++s, at ^= 1) {
            if (s + 1 < last) step.load(A, B, column0, (s + 1) * BK, m, n, k);
            f.multiply(As + at * A_FLOATS, Bs + at * B_FLOATS);
            if (s + 1 < last) {
                step.store(As + (at ^ 1) * A_FLOATS, Bs + (at ^ 1) * B_FLOATS);
                __syncthreads();
            }
        }
    }
}

template <bool WHOLE>
__device__ __forceinline__ void tile(const float* a, const float* b, const float* __restrict__ bias, float* c,
                                     float4* partial, int* tickets, int m, int n, int k) {
    __shared__ __align__(16) float shared[SHARED_FLOATS];
    const int steps = (k + BK - 1) / BK, splits = gridDim.z, column0 = blockIdx.x * BN;
    Fragment f;
    float4 early[CHUNKS];  // where they are few, what the end wants is asked for at the beginning
#pragma unroll
    for (int q = 0; q < (EARLY ? CHUNKS : 0); ++q)
        early[q] = load4<WHOLE>(bias, 0, column0 + Finished::place(f, q).column, 1, n);
    sum_steps<WHOLE>(f, a, b, column0, blockIdx.z * steps / splits, (blockIdx.z + 1) * steps / splits, m, n, k, shared);
    Finished done(f, shared);
    if (SPLIT > 1 && splits > 1 && !done.join(partial, tickets)) return;
#pragma unroll
    for (int q = 0; q < CHUNKS; ++q) {
        const Place p = Finished::place(f, q);
        const float4 more = EARLY ? early[q] : load4<WHOLE>(bias, 0, column0 + p.column, 1, n);
        finish4<WHOLE>(c, more, done.chunk[q], blockIdx.y * BM + p.row, column0 + p.column, m, n);
    }
}

#else  // LARGE

constexpr int THREADS = BM / 8 * (BN / TN), WARPS_N = BN / (8 * TN);
constexpr int LDA = BM + 4, A_FLOATS = BK * LDA, B_FLOATS = BK * BN;
// Where B goes through registers its neighbours change places, so that a sum and its factor of B lie in different banks
// of the register file: sums lie as vectors are stored, factors as vectors are read.
constexpr int SWAP = STAGES == 1 ? 1 : 0;
constexpr int A_LOADS = BM * BK / 4 / THREADS, A_WORDS = 4 * A_LOADS, B_LOADS = BK * BN / 4 / THREADS;

// One word, zero where it lies outside.
__device__ __forceinline__ void copy1(float* to, const float* from, bool inside) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(inside ? 4 : 0) : "memory");
}

__device__ __forceinline__ void copy4(float* to, const float* __restrict__ from) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}

// Where this thread's part of the next step comes from, and where it goes in a tile: the i-th vector lies a fixed number
// of rows below the first. By cp.async, A comes word by word, eight neighbours of a row by eight threads, and so lies turned.
template <bool WHOLE>
struct Source {
    static constexpr int A_ACROSS = STAGES == 1 ? BK / 4 : 8, A_DOWN = THREADS / A_ACROSS, B_DOWN = THREADS / (BN / 4);
    const float *__restrict__ A, *__restrict__ B;
    int m, n, k, a_row, a_column, b_row, b_column;
    float4 a[A_LOADS], b[B_LOADS];  // between global and shared memory

    __device__ __forceinline__ Source(const float* of_a, const float* of_b, int row0, int column0, int k0, int rows,
                                      int columns, int depth)
        : A(of_a), B(of_b), m(rows), n(columns), k(depth), a_row(row0 + threadIdx.x / A_ACROSS),
          a_column(k0 + threadIdx.x % A_ACROSS * (STAGES == 1 ? 4 : 1)), b_row(k0 + threadIdx.x / (BN / 4)),
          b_column(column0 + threadIdx.x % (BN / 4) * 4) {
        if constexpr (WHOLE) A += a_row * k + a_column, B += b_row * n + b_column;
    }

    __device__ __forceinline__ void advance(int depth) {
        if constexpr (WHOLE)
            A += depth, B += depth * n;
        else
            a_column += depth, b_row += depth;
    }

    __device__ __forceinline__ void load() {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i)
            a[i] = WHOLE ? *reinterpret_cast<const float4*>(A + i * A_DOWN * k) : load4<false>(A, a_row + i * A_DOWN, a_column, m, k);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i)
            b[i] = WHOLE ? *reinterpret_cast<const float4*>(B + i * B_DOWN * n) : load4<false>(B, b_row + i * B_DOWN, b_column, k, n);
        advance(BK);
    }

    __device__ __forceinline__ void store(float* As, float* Bs) const {
        float* to = As + threadIdx.x % A_ACROSS * 4 * LDA + threadIdx.x / A_ACROSS;
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i, to += A_DOWN)
            to[0] = a[i].x, to[LDA] = a[i].y, to[2 * LDA] = a[i].z, to[3 * LDA] = a[i].w;
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i)
            *reinterpret_cast<float4*>(Bs + (threadIdx.x + i * THREADS) * 4) = make_float4(b[i].y, b[i].x, b[i].w, b[i].z);
    }

    // Where there is no MORE the same step is brought again in place of one that would lie outside: no branch.
    __device__ __forceinline__ void copy(float* As, float* Bs, bool more) {
        float *to_a = As + threadIdx.x % 8 * LDA + threadIdx.x / 8, *to_b = Bs + threadIdx.x * 4;
#pragma unroll
        for (int i = 0; i < A_WORDS; ++i) {
            const int down = i / (BK / 8) * A_DOWN, across = i % (BK / 8) * 8;
            const bool inside = WHOLE || (a_row + down < m && a_column + across < k);
            copy1(to_a + across * LDA + down, A + (inside ? (WHOLE ? 0 : a_row * k + a_column) + down * k + across : 0), inside);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i)
            if constexpr (WHOLE) {
                copy4(to_b + i * THREADS * 4, B + i * B_DOWN * n);
            } else {
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const bool inside = b_row + i * B_DOWN < k && b_column + e < n;
                    copy1(to_b + i * THREADS * 4 + e, B + (inside ? (b_row + i * B_DOWN) * n + b_column + e : 0), inside);
                }
            }
        advance(more ? BK : 0);
    }
};

// What a thread multiplies at one depth: 8 values of A's column, TN of B's row (neighbours in changed places with SWAP).
struct Fragment {
    float a[8], b[TN];

    __device__ __forceinline__ void read(const float* As, const float* Bs, int d) {
        unpack(a, *reinterpret_cast<const float4*>(As + d * LDA));
        unpack(a + 4, *reinterpret_cast<const float4*>(As + d * LDA + 16));
#pragma unroll
        for (int j = 0; j < TN; j += 4) unpack(b + j, *reinterpret_cast<const float4*>(Bs + d * BN + j * 8));
    }
};

// A multiprocessor reads one register of each of two banks a cycle, and keeps what the last product read of each operand and
// bank. Each product shares a factor with the one before; odd rows come first, as a row's sums begin in the even bank.
__device__ __forceinline__ void multiply(float (&c)[8][TN], const Fragment& f) {
    if constexpr (SQUARES) {
#pragma unroll
        for (int j = 0; j < TN; j += 2)
#pragma unroll
            for (int t = 0; t < 8; t += 2) {
                const int i = j % 4 ? 6 - t : t;
                c[i + 1][j] += f.a[i + 1] * f.b[j ^ SWAP];
                c[i + 1][j + 1] += f.a[i + 1] * f.b[(j + 1) ^ SWAP];
                c[i][j + 1] += f.a[i] * f.b[(j + 1) ^ SWAP];
                c[i][j] += f.a[i] * f.b[j ^ SWAP];
            }
    } else {
#pragma unroll
        for (int r = 0; r < 8; ++r)
#pragma unroll
            for (int t = 0; t < TN; ++t) {
                const int i = r ^ 1, j = r % 2 ? TN - 1 - t : t;
                c[i][j] += f.a[i] * f.b[j ^ SWAP];
            }
    }
}

// Adds the partial tiles of those that share a tile, in order; returns true in the block that came last, whose c is the
// sum.
__device__ __forceinline__ bool join(float (&c)[8][TN], float4* partial, int* tickets) {
    __shared__ int ticket;
    constexpr int FOURS = 2 * TN, ACROSS = TN / 4;
    const int tile = blockIdx.x, count = gridDim.y;
    float4* of_tile = partial + static_cast<long long>(tile) * count * FOURS * THREADS + threadIdx.x;
    float4* to = of_tile + blockIdx.y * FOURS * THREADS;
#pragma unroll
    for (int q = 0; q < FOURS; ++q) {
        const float* four = c[q / ACROSS] + q % ACROSS * 4;
        to[q * THREADS] = make_float4(four[0], four[1], four[2], four[3]);
    }
    __syncthreads();  // every thread's part is written before thread 0 makes it visible and says so
    if (threadIdx.x == 0) {
        __threadfence();
        ticket = atomicAdd(tickets + tile, 1);
        __threadfence();
    }
    __syncthreads();
    if (ticket != count - 1) return false;
    if (threadIdx.x == 0) tickets[tile] = 0;
    for (int i = 0; i < count; ++i) {
        const float4* from = of_tile + i * FOURS * THREADS;
#pragma unroll
        for (int q = 0; q < FOURS; ++q) {
            float* four = c[q / ACROSS] + q % ACROSS * 4;
            const float4 more = from[q * THREADS];
            unpack(four, i == 0 ? more : add(make_float4(four[0], four[1], four[2], four[3]), more));
        }
    }
    return true;
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

// One step of the tiles at `a` and `b`; where there is MORE, the next one's lie at `next_a` and `next_b`, and are waited for.
template <bool MORE>
__device__ __forceinline__ void step_by_copies(float (&c)[8][TN], Fragment (&f)[2], const float* a, const float* b,
                                               const float* next_a, const float* next_b) {
#pragma unroll
    for (int d = 0; d < BK; ++d) {
        if (d + 1 < BK) {
            f[(d + 1) % 2].read(a, b, d + 1);
        } else if (MORE) {
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES > 1 ? STAGES - 2 : 0) : "memory");
            __syncthreads();  // the next step is there for all
            f[0].read(next_a, next_b, 0);
        }
        multiply(c, f[d % 2]);
    }
}

// The same, STAGES - 1 steps on their way by cp.async.
template <bool WHOLE>
__device__ __forceinline__ void sum_by_copies(float (&c)[8][TN], Source<WHOLE>& source, float* As, float* Bs, int row,
                                              int column, int steps) {
    constexpr int STEP = A_FLOATS + B_FLOATS, ROUND = (STAGES - 1) * STEP;
    Fragment f[2];
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        source.copy(As + s * STEP, Bs + s * STEP, s + 1 < steps);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES > 1 ? STAGES - 2 : 0) : "memory");
    __syncthreads();
    f[0].read(As + row, Bs + column, 0);
    int at = 0, to = ROUND;
#pragma unroll 1
    for (int s = 1; s < steps; ++s) {
        source.copy(As + to, Bs + to, s + STAGES - 1 < steps);  // nobody reads that tile since the last barrier
        asm volatile("cp.async.commit_group;" ::: "memory");
        to = at;
        const int next = at == ROUND ? 0 : at + STEP;
        step_by_copies<true>(c, f, As + at + row, Bs + at + column, As + next + row, Bs + next + column);
        at = next;
    }
    step_by_copies<false>(c, f, As + at + row, Bs + at + column, As, Bs);
    asm volatile("cp.async.wait_group 0;" ::: "memory");  // what was brought twice is not to meet the next run's tiles
}

// Where a block's tile lies, and a thread's squares in it. Tiles are counted in bands of BAND rows of tiles, column by
// column; the last band may be lower.
struct Tile {
    int row0, column0, row, column;

    __device__ __forceinline__ Tile(int m, int n) {
        const int down = (m + BM - 1) / BM, across = (n + BN - 1) / BN;
        const int band = blockIdx.x / (BAND * across), inside = blockIdx.x % (BAND * across);
        const int height = min(BAND, down - band * BAND), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        row0 = (band * BAND + inside % height) * BM, column0 = inside / height * BN;
        // Neighbours read the same of B, and next but one neighbours the same of A: half as many passes of shared memory.
        row = warp / WARPS_N * 32 + (lane / 16 * 2 + lane % 2) * 4;
        column = warp % WARPS_N * 8 * TN + lane / 2 % 8 * 4;
    }
};

// The block's part of its tile; returns true where c is the whole sum.
template <bool WHOLE>
__device__ __forceinline__ bool sum_tile(float (&c)[8][TN], const Tile& tile, const float* A, const float* B, float4* partial,
                                         int* tickets, int m, int n, int k) {
    extern __shared__ __align__(16) float tiles[];  // more than 48 KiB have to be asked for by the launch
    const int steps = (k + BK - 1) / BK, splits = gridDim.y;
    const int first = blockIdx.y * steps / splits, last = (blockIdx.y + 1) * steps / splits;
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) c[i][j] = 0.f;
    Source<WHOLE> source(A, B, tile.row0, tile.column0, first * BK, m, n, k);
    if constexpr (STAGES == 1)
        sum_by_registers(c, source, tiles, tiles + A_FLOATS, tile.row, tile.column, last - first);
    else
        sum_by_copies(c, source, tiles, tiles + A_FLOATS, tile.row, tile.column, last - first);
    return SPLIT == 1 || splits == 1 || join(c, partial, tickets);
}

template <bool WHOLE>
__device__ __forceinline__ void tile(const float* a, const float* b, const float* __restrict__ bias, float* c,
                                     float4* partial, int* tickets, int m, int n, int k) {
    const Tile at(m, n);
    float sums[8][TN];
    if (!sum_tile<WHOLE>(sums, at, a, b, partial, tickets, m, n, k)) return;
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
        const float4 more = load4<WHOLE>(bias, 0, at.column0 + at.column + j * 8, 1, n);
#pragma unroll
        for (int i = 0; i < 8; ++i)
            finish4<WHOLE>(c, more, make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]),
                           at.row0 + at.row + i / 4 * 16 + i % 4, at.column0 + at.column + j * 8, m, n);
    }
}

#endif  // LARGE

// For shapes that are whole tiles: vector loads, no bounds to look at.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) matmul_whole(PARAMETERS) {
    tile<true>(a, b, bias, c, partial, tickets, m, n, k);
}

// For every other shape.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) matmul_any(PARAMETERS) {
    tile<false>(a, b, bias, c, partial, tickets, m, n, k);
}

#if FUSED == 0
extern "C" __global__ void finish(const float* __restrict__ bias, float* c, int m, int n) {
    const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at < static_cast<long long>(m) * n) c[at] = gelu(c[at] + bias[at % n]);
}
#endif
