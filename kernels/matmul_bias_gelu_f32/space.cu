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
// Splits are added in a fixed order, so that results are the same bits in every run.

constexpr int ACROSS = BN / TN, DOWN = BM / TM, THREADS = ACROSS * DOWN;  // threads along a row, and down a column
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

__device__ __forceinline__ float gelu(float z) {
    return 0.5f * z * (1.f + erff(z * 0.70710678f));
}

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
