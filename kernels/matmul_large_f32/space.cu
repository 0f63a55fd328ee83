// A space of row-major single-precision matrix products of large matrices, C (m x n) = A (m x k) * B (k x n).
//
// The parameters are macros, defined above this text for each configuration:
//   BM, BN, BK   tile of C that a block makes, and how deep one step along k goes
//   TN           a thread makes 8 x TN elements, 8 or 16
//   STAGES       1: the next step goes through registers, and A lies turned in shared memory (two tiles);
//                more: so many tiles, brought by cp.async, and A lies as it is, read four depths at once
//   RESIDENT     blocks that a multiprocessor is to hold at once: more leave each thread fewer registers
//   SPLIT        blocks that share one tile of C at most, as gridDim.y; 0: stream-K, where all tiles' steps along k are
//                cut into one run of equal length a block (Osama et al., "Stream-K: Work-centric Parallel Decomposition
//                for Dense Matrix-Matrix Multiplication on the GPU", 2023)
//   BAND         blocks take tiles of BAND rows of tiles together, column by column, for the level-2 cache
//   AHEAD        1: the fragments of the next depth are read while this one is multiplied
//
// A thread makes its elements in squares of 4 x 4, or in rows of 4 where A lies as it is; a warp 32 x 8 * TN.
// Sums over splits are taken in a fixed order by the block with the tile's last ticket, so that bits do not differ.

constexpr int THREADS = BM / 8 * (BN / TN), WARPS_N = BN / (8 * TN), TILES = STAGES == 1 ? 2 : STAGES;
constexpr int LDA = STAGES == 1 ? BM + 4 : BK + 4, A_FLOATS = STAGES == 1 ? BK * LDA : BM * LDA, B_FLOATS = BK * BN;
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

// Word by word, zero outside.
__device__ __forceinline__ void copy4(float* to, const float* __restrict__ x, int row, int column, int rows,
                                      int columns) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const bool inside = row < rows && column + e < columns;
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at + 4 * e),
                     "l"(x + (inside ? row * columns + column + e : 0)), "r"(inside ? 4 : 0)
                     : "memory");
    }
}

__device__ __forceinline__ void copy16(float* to, const float* __restrict__ from) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
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
            *reinterpret_cast<float4*>(Bs + (threadIdx.x + i * THREADS) * 4) = b[i];
    }

    __device__ __forceinline__ void copy(float* As, float* Bs) {
        float *to_a = As + threadIdx.x / (BK / 4) * LDA + threadIdx.x % (BK / 4) * 4, *to_b = Bs + threadIdx.x * 4;
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i)
            if constexpr (WHOLE)
                copy16(to_a + i * A_DOWN * LDA, A + i * A_DOWN * k);
            else
                copy4(to_a + i * A_DOWN * LDA, A, a_row + i * A_DOWN, a_column, m, k);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i)
            if constexpr (WHOLE)
                copy16(to_b + i * THREADS * 4, B + i * B_DOWN * n);
            else
                copy4(to_b + i * THREADS * 4, B, b_row + i * B_DOWN, b_column, k, n);
        advance();
    }
};

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

// Adds the partial tiles of those that share a tile, in order; returns true in the block that came last, whose c is the
// sum. `slot_of(i)` is where the i-th of `count` leaves its own.
template <class SlotOf>
__device__ __forceinline__ bool join(float (&c)[8][TN], float4* partial, int* ticket_of_tile, int own, int count,
                                     SlotOf slot_of) {
    __shared__ int ticket;
    constexpr int FOURS = 2 * TN, ACROSS = TN / 4;
    float4* to = partial + static_cast<long long>(slot_of(own)) * FOURS * THREADS + threadIdx.x;
#pragma unroll
    for (int q = 0; q < FOURS; ++q) {
        const float* four = c[q / ACROSS] + q % ACROSS * 4;
        to[q * THREADS] = make_float4(four[0], four[1], four[2], four[3]);
    }
    __syncthreads();  // every thread's part is written before thread 0 makes it visible and says so
    if (threadIdx.x == 0) {
        __threadfence();
        ticket = atomicAdd(ticket_of_tile, 1);
        __threadfence();
    }
    __syncthreads();
    if (ticket != count - 1) return false;
    if (threadIdx.x == 0) *ticket_of_tile = 0;
    for (int i = 0; i < count; ++i) {
        const float4* from = partial + static_cast<long long>(slot_of(i)) * FOURS * THREADS + threadIdx.x;
#pragma unroll
        for (int q = 0; q < FOURS; ++q) {
            float* four = c[q / ACROSS] + q % ACROSS * 4;
            const float4 more = from[q * THREADS];
            unpack(four, i == 0 ? more : add(make_float4(four[0], four[1], four[2], four[3]), more));
        }
    }
    return true;
}

// One step, of the tile AT, while the next goes through registers to the other one.
template <int AT, bool WHOLE>
__device__ __forceinline__ void step_by_registers(float (&c)[8][TN], Source<WHOLE>& source, Fragment (&f)[1 + AHEAD],
                                                  float* As, float* Bs, int row, int column, bool more) {
    const float *a = As + AT * A_FLOATS, *b = Bs + AT * B_FLOATS;
    float *next_a = As + (1 - AT) * A_FLOATS, *next_b = Bs + (1 - AT) * B_FLOATS;
    if (more) source.load();
#pragma unroll
    for (int d = 0; d < BK; ++d) {
        if constexpr (AHEAD == 1) {
            if (d + 1 < BK) {
                f[(d + 1) % 2].read(a, b, row, column, d + 1);
            } else if (more) {
                source.store(next_a, next_b);
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
        source.store(next_a, next_b);
        __syncthreads();
    }
}

// `steps` steps along k, the next one through registers; by twos, so that each tile is at a fixed place.
template <bool WHOLE>
__device__ __forceinline__ void sum_by_registers(float (&c)[8][TN], Source<WHOLE>& source, float* As, float* Bs, int row,
                                                 int column, int steps) {
    Fragment f[1 + AHEAD];
    source.load();
    source.store(As, Bs);
    __syncthreads();
    if constexpr (AHEAD == 1) f[0].read(As, Bs, row, column, 0);
    for (int s = 0; s < steps; s += 2) {
        step_by_registers<0>(c, source, f, As, Bs, row, column, s + 1 < steps);
        if (s + 1 < steps) step_by_registers<1>(c, source, f, As, Bs, row, column, s + 2 < steps);
    }
}

// The same, STAGES - 1 steps on their way by cp.async.
template <bool WHOLE>
__device__ __forceinline__ void sum_by_copies(float (&c)[8][TN], Source<WHOLE>& source, float* As, float* Bs, int row,
                                              int column, int steps) {
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps) source.copy(As + s * A_FLOATS, Bs + s * B_FLOATS);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    int at = 0, to = STAGES - 1;
    for (int s = 0; s < steps; ++s) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES > 1 ? STAGES - 2 : 0) : "memory");
        __syncthreads();  // step s is there for all, and nobody reads the tile that is brought next
        if (s + STAGES - 1 < steps) source.copy(As + to * A_FLOATS, Bs + to * B_FLOATS);
        asm volatile("cp.async.commit_group;" ::: "memory");
        multiply_step(c, As + at * A_FLOATS, Bs + at * B_FLOATS, row, column);
        at = at + 1 == STAGES ? 0 : at + 1, to = to + 1 == STAGES ? 0 : to + 1;
    }
}

// The matrices, and where this thread's part of a tile lies.
template <bool WHOLE>
struct Product {
    const float *__restrict__ A, *__restrict__ B;
    float* __restrict__ C;
    int m, n, k;
    float *As, *Bs;
    int down, across, steps, row, column;

    __device__ __forceinline__ Product(const float* a, const float* b, float* c, int rows, int columns, int depth,
                                       float* tiles)
        : A(a), B(b), C(c), m(rows), n(columns), k(depth), As(tiles), Bs(tiles + TILES * A_FLOATS),
          down((m + BM - 1) / BM), across((n + BN - 1) / BN), steps((k + BK - 1) / BK) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        row = warp / WARPS_N * 32 + lane / 8 * (STAGES == 1 ? 4 : 1);
        column = warp % WARPS_N * 8 * TN + lane % 8 * 4;
    }

    // Tiles are counted in bands of BAND rows of tiles, column by column; the last band may be lower.
    __device__ __forceinline__ void place(int tile, int& row0, int& column0) const {
        const int band = tile / (BAND * across), inside = tile % (BAND * across);
        const int height = min(BAND, down - band * BAND);
        row0 = (band * BAND + inside % height) * BM, column0 = inside / height * BN;
    }

    __device__ __forceinline__ void sum(float (&c)[8][TN], int tile, int first, int last) const {
        int row0, column0;
        place(tile, row0, column0);
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j) c[i][j] = 0.f;
        Source<WHOLE> source(A, B, row0, column0, first * BK, m, n, k);
        if constexpr (STAGES == 1)
            sum_by_registers(c, source, As, Bs, row, column, last - first);
        else
            sum_by_copies(c, source, As, Bs, row, column, last - first);
    }

    __device__ __forceinline__ void store(const float (&c)[8][TN], int tile) const {
        int row0, column0;
        place(tile, row0, column0);
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                store4<WHOLE>(C, make_float4(c[i][j], c[i][j + 1], c[i][j + 2], c[i][j + 3]),
                              row0 + row + (STAGES == 1 ? i / 4 * 16 + i % 4 : 4 * i), column0 + column + j * 8, m, n);
    }
};

// The run of steps that each block takes of `steps` in all.
struct Runs {
    long long steps, blocks;

    __device__ __forceinline__ int begin(int block) const { return static_cast<int>(block * steps / blocks); }
    __device__ __forceinline__ int block_of(int step) const {
        return static_cast<int>(((step + 1) * blocks - 1) / steps);
    }
};

template <bool WHOLE>
__device__ __forceinline__ void product(const float* A, const float* B, float* C, int m, int n, int k, float4* partial,
                                        int* tickets) {
    extern __shared__ __align__(16) float tiles[];  // more than 48 KiB have to be asked for by the launch
    const Product<WHOLE> all(A, B, C, m, n, k, tiles);
    float c[8][TN];
    if constexpr (SPLIT > 0) {
        const int tile = blockIdx.x, own = blockIdx.y, splits = gridDim.y;
        all.sum(c, tile, own * all.steps / splits, (own + 1) * all.steps / splits);
        if (SPLIT > 1 && splits > 1 &&
            !join(c, partial, tickets + tile, own, splits, [=](int i) { return tile * splits + i; }))
            return;
        all.store(c, tile);
    } else {
        const Runs runs = {static_cast<long long>(all.down) * all.across * all.steps, gridDim.x};
        const int end = runs.begin(blockIdx.x + 1);
        for (int at = runs.begin(blockIdx.x), last; at < end; at += last) {
            const int tile = at / all.steps, first = at % all.steps, start = at - first;
            last = min(all.steps, end - start);
            all.sum(c, tile, first, last);
            __syncthreads();  // the tiles in shared memory are free for the next run
            at = start;
            if (first > 0 || last < all.steps) {
                // A block leaves two partial tiles at most: of the tile where it began, and of that where it ended.
                const int leader = runs.block_of(start), count = runs.block_of(start + all.steps - 1) - leader + 1;
                if (!join(c, partial, tickets + tile, blockIdx.x - leader, count,
                          [=](int i) { return 2 * (leader + i) + (i == 0); }))
                    continue;
            }
            all.store(c, tile);
        }
    }
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
