// A space of row-major single-precision matrix products of large matrices, C (m x n) = A (m x k) * B (k x n).
//
// The parameters are macros, defined above this text for each configuration:
//   BM, BN, BK   tile of C that a block makes, and how deep one step along k goes
//   TN           a thread makes 8 x TN elements, 8 or 16
//   STAGES       1: the next step goes through registers to the other of two tiles; more: so many tiles, brought by cp.async
//   RESIDENT     blocks that a multiprocessor is to hold at once: more leave each thread fewer registers
//   SPLIT        blocks that share one tile of C at most, as gridDim.y; 0: stream-K, where all tiles' steps along k are
//                cut into one run of equal length a block (Osama et al., "Stream-K: Work-centric Parallel Decomposition
//                for Dense Matrix-Matrix Multiplication on the GPU", 2023)
//   BAND         blocks take tiles of BAND rows of tiles together, column by column, for the level-2 cache
//   SQUARES      1: products are taken in squares of 2 x 2; 0: row by row, there and back
//
// A thread makes its elements in squares of 4 x 4; a warp 32 x 8 * TN. A lies turned in shared memory, and the fragments of
// the next depth are read while this one is multiplied. Sums over splits are taken in a fixed order by the block with the
// tile's last ticket, so that bits do not differ. Why it is as it is: workflow/adr/0051-large-products.md.

constexpr int THREADS = BM / 8 * (BN / TN), WARPS_N = BN / (8 * TN), TILES = STAGES == 1 ? 2 : STAGES;
constexpr int LDA = BM + 4, A_FLOATS = BK * LDA, B_FLOATS = BK * BN;
// Where B goes through registers its neighbours change places, so that a sum and its factor of B lie in different banks
// of the register file: sums lie as vectors are stored, factors as vectors are read.
constexpr int SWAP = STAGES == 1 ? 1 : 0;
constexpr int A_LOADS = BM * BK / 4 / THREADS, A_WORDS = 4 * A_LOADS, B_LOADS = BK * BN / 4 / THREADS;

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
            a[i] = WHOLE ? *reinterpret_cast<const float4*>(A + i * A_DOWN * k) : load4(A, a_row + i * A_DOWN, a_column, m, k);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i)
            b[i] = WHOLE ? *reinterpret_cast<const float4*>(B + i * B_DOWN * n) : load4(B, b_row + i * B_DOWN, b_column, k, n);
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

__device__ __forceinline__ void unpack(float* to, float4 v) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }

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
        : A(a), B(b), C(c), m(rows), n(columns), k(depth), As(tiles), Bs(tiles + A_FLOATS),
          down((m + BM - 1) / BM), across((n + BN - 1) / BN), steps((k + BK - 1) / BK) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        // Neighbours read the same of B, and next but one neighbours the same of A: half as many passes of shared memory.
        row = warp / WARPS_N * 32 + (lane / 16 * 2 + lane % 2) * 4;
        column = warp % WARPS_N * 8 * TN + lane / 2 % 8 * 4;
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
                              row0 + row + i / 4 * 16 + i % 4, column0 + column + j * 8, m, n);
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
