// A space of row-major single-precision matrix products, C (m x n) = A (m x k) * B (k x n).
//
// The parameters are macros, defined above this text for each configuration:
//   BM, BN, BK   tile of C that a block makes, and how deep one step along k goes
//   TM, TN       elements of C that a thread holds in registers
//   SLICES       groups of threads of one block that share a step: each takes BK / SLICES of its depth
//   SPLIT        blocks that share one tile of C: the plan launches at most SPLIT of them, as gridDim.z
//   STAGES       1: load, then compute; 2: the next step's loads are in flight while this one is computed
//
// Sums over slices and over splits are taken in a fixed order, so that results are the same bits in every run. A block
// that shares its tile leaves a partial tile in scratch and takes a ticket; the one with the last ticket adds the
// partial tiles in order and sets the ticket counter back to zero for the next call.

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

struct Place {
    int row, column;
};

__device__ __forceinline__ float4 add(float4 x, float4 y) {
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

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

// One step's tiles of A and B, in registers between global and shared memory.
template <bool WHOLE>
struct Step {
    float4 a[A_LOADS], b[B_LOADS];

    __device__ __forceinline__ void load(const float* A, const float* B, int k0, int m, int n, int k) {
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
                b[i] = load4<WHOLE>(B, k0 + v / (BN / 4), blockIdx.x * BN + v % (BN / 4) * 4, k, n);
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

template <bool WHOLE>
__device__ __forceinline__ void multiply(const float* A, const float* B, float* C, int m, int n, int k,
                                         float4* partial, int* tickets) {
    __shared__ __align__(16) float shared[SHARED_FLOATS];
    float *As = shared, *Bs = shared + STAGES * A_FLOATS;
    const int steps = (k + BK - 1) / BK, splits = gridDim.z;
    const int first = blockIdx.z * steps / splits, last = (blockIdx.z + 1) * steps / splits;
    Fragment f;
    Step<WHOLE> step;
    if constexpr (STAGES == 1) {
        for (int s = first; s < last; ++s) {
            step.load(A, B, s * BK, m, n, k);
            if (s > first) __syncthreads();
            step.store(As, Bs);
            __syncthreads();
            f.multiply(As, Bs);
        }
    } else {
        int at = 0;
        step.load(A, B, first * BK, m, n, k);
        step.store(As, Bs);
        __syncthreads();
        for (int s = first; s < last; ++s, at ^= 1) {
            if (s + 1 < last) step.load(A, B, (s + 1) * BK, m, n, k);
            f.multiply(As + at * A_FLOATS, Bs + at * B_FLOATS);
            if (s + 1 < last) {
                step.store(As + (at ^ 1) * A_FLOATS, Bs + (at ^ 1) * B_FLOATS);
                __syncthreads();
            }
        }
    }
    Finished done(f, shared);
    if (SPLIT > 1 && splits > 1 && !done.join(partial, tickets)) return;
#pragma unroll
    for (int q = 0; q < CHUNKS; ++q) {
        const Place p = Finished::place(f, q);
        store4<WHOLE>(C, done.chunk[q], blockIdx.y * BM + p.row, blockIdx.x * BN + p.column, m, n);
    }
}

// For shapes that are whole tiles: vector loads, no bounds to look at.
extern "C" __global__ void __launch_bounds__(THREADS)
matmul_whole(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k,
             float4* partial, int* tickets) {
    multiply<true>(a, b, c, m, n, k, partial, tickets);
}

// For every other shape.
extern "C" __global__ void __launch_bounds__(THREADS)
matmul_any(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k,
           float4* partial, int* tickets) {
    multiply<false>(a, b, c, m, n, k, partial, tickets);
}
