// A space of products of a diagonal matrix and a matrix, c = diag(d) * b.
//
// The parameters are macros, defined above this text for each configuration:
//   THREADS  of a block
//   VEC      neighbours of one load: 1, 2 or 4
//   FLIGHT   loads of a thread that are in flight together
//   WAY      0: a block product in which only the tiles on the diagonal count: 32 x 32 of them, from shared memory;
//            1: rows are scaled, a block a run of one row; 2: rows are scaled, threads take c as one long array

template <int WIDTH>
__device__ __forceinline__ void scale(const float* from, float* to, float by) {
    if constexpr (WIDTH == 4) {
        const float4 q = *reinterpret_cast<const float4*>(from);
        *reinterpret_cast<float4*>(to) = make_float4(q.x * by, q.y * by, q.z * by, q.w * by);
    } else if constexpr (WIDTH == 2) {
        const float2 q = *reinterpret_cast<const float2*>(from);
        *reinterpret_cast<float2*>(to) = make_float2(q.x * by, q.y * by);
    } else {
        *to = *from * by;
    }
}

template <int WIDTH>
__device__ __forceinline__ void rows(const float* __restrict__ d, const float* __restrict__ b, float* __restrict__ c,
                                     int m, int n) {
    const float by = d[blockIdx.y];
    const long long start = static_cast<long long>(blockIdx.y) * n;
#pragma unroll
    for (int f = 0; f < FLIGHT; ++f) {
        const int column = ((blockIdx.x * FLIGHT + f) * THREADS + threadIdx.x) * WIDTH;
        if (column < n) scale<WIDTH>(b + start + column, c + start + column, by);
    }
}

template <int WIDTH>
__device__ __forceinline__ void all(const float* __restrict__ d, const float* __restrict__ b, float* __restrict__ c,
                                    int m, int n) {
    const long long whole = static_cast<long long>(m) * n;
#pragma unroll
    for (int f = 0; f < FLIGHT; ++f) {
        const long long at = ((static_cast<long long>(blockIdx.x) * FLIGHT + f) * THREADS + threadIdx.x) * WIDTH;
        if (at < whole) scale<WIDTH>(b + at, c + at, d[at / n]);
    }
}

__device__ __forceinline__ void tiles(const float* __restrict__ d, const float* __restrict__ b, float* __restrict__ c,
                                      int m, int n) {
    __shared__ float left[32][33], right[32][32];
    const int row0 = blockIdx.y * 32, column = blockIdx.x * 32 + threadIdx.x % 32;
    for (int i = threadIdx.x / 32; i < 32; i += THREADS / 32) {
        left[i][threadIdx.x % 32] = i == static_cast<int>(threadIdx.x % 32) && row0 + i < m ? d[row0 + i] : 0.f;
        right[i][threadIdx.x % 32] =
            row0 + i < m && column < n ? b[static_cast<long long>(row0 + i) * n + column] : 0.f;
    }
    __syncthreads();
    for (int i = threadIdx.x / 32; i < 32 && row0 + i < m; i += THREADS / 32) {
        float sum = 0.f;
#pragma unroll 4
        for (int k = 0; k < 32; ++k) sum = fmaf(left[i][k], right[k][threadIdx.x % 32], sum);
        if (column < n) c[static_cast<long long>(row0 + i) * n + column] = sum;
    }
}

#define PARAMETERS const float *__restrict__ d, const float *__restrict__ b, float *__restrict__ c, int m, int n

#if WAY == 0
extern "C" __global__ void __launch_bounds__(THREADS) diagonal_any(PARAMETERS) { tiles(d, b, c, m, n); }
#elif WAY == 1
extern "C" __global__ void __launch_bounds__(THREADS) diagonal_vectors(PARAMETERS) { rows<VEC>(d, b, c, m, n); }
extern "C" __global__ void __launch_bounds__(THREADS) diagonal_any(PARAMETERS) { rows<1>(d, b, c, m, n); }
#else
extern "C" __global__ void __launch_bounds__(THREADS) diagonal_vectors(PARAMETERS) { all<VEC>(d, b, c, m, n); }
extern "C" __global__ void __launch_bounds__(THREADS) diagonal_any(PARAMETERS) { all<1>(d, b, c, m, n); }
#endif
