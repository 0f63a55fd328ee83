// A space of residual add and RMS norm: h = x + residual, y = h / sqrt(mean of h*h + 1e-5) * gamma.
//
// The parameters are macros, defined above this text for each configuration:
//   GROUP    threads that share a row
//   ROWS     rows that a block does at once, GROUP threads each
//   VEC      values of one load: 1, 2 or 4
//   KEEP     where h waits between the passes: 0 in global memory, 1 in registers, 2 in shared memory
//   HOLD     with KEEP 1: loads of a row that a thread keeps
//   EARLY    1: gamma is loaded before the barrier of the sum, so that it is there in time; 0: after it. With KEEP 1 only
//
// A thread reads again only what it wrote itself, so no barrier lies between the passes but that of the sum.

constexpr int THREADS = GROUP * ROWS, WARPS = GROUP / 32;

template <int WIDTH>
struct Values {
    float v[WIDTH];

    __device__ __forceinline__ void load(const float* p) {
        if constexpr (WIDTH == 4) {
            const float4 q = *reinterpret_cast<const float4*>(p);
            v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
        } else if constexpr (WIDTH == 2) {
            const float2 q = *reinterpret_cast<const float2*>(p);
            v[0] = q.x, v[1] = q.y;
        } else {
            v[0] = *p;
        }
    }

    __device__ __forceinline__ void store(float* p) const {
        if constexpr (WIDTH == 4) *reinterpret_cast<float4*>(p) = make_float4(v[0], v[1], v[2], v[3]);
        else if constexpr (WIDTH == 2) *reinterpret_cast<float2*>(p) = make_float2(v[0], v[1]);
        else *p = v[0];
    }
};

__device__ __forceinline__ float sum_group(float sum) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
    if constexpr (WARPS > 1) {
        __shared__ float sums[ROWS][WARPS];
        const int group = threadIdx.x / GROUP, warp = threadIdx.x % GROUP / 32;
        if (threadIdx.x % 32 == 0) sums[group][warp] = sum;
        __syncthreads();
        sum = 0.f;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) sum += sums[group][w];
    }
    return sum;
}

// The thread's columns in turn: a fixed number of them where they are kept in registers.
template <int WIDTH, int KEPT, class Body>
__device__ __forceinline__ void each(int cols, Body body) {
    const int first = threadIdx.x % GROUP * WIDTH;
    if constexpr (KEPT == 1) {
#pragma unroll
        for (int i = 0; i < HOLD; ++i)
            if (first + i * GROUP * WIDTH < cols) body(i, first + i * GROUP * WIDTH);
    } else {
        for (int column = first; column < cols; column += GROUP * WIDTH) body(0, column);
    }
}

// Rows behind the last one are done again as the last, and not stored, so that every thread comes to each barrier.
template <int WIDTH, int KEPT>
__device__ __forceinline__ void normalise(const float* __restrict__ x, const float* __restrict__ residual,
                                          const float* __restrict__ gamma, float* h, float* y, int rows, int cols) {
    extern __shared__ __align__(16) float shared[];
    const int wanted = blockIdx.x * ROWS + threadIdx.x / GROUP;
    if (WARPS == 1 && wanted >= rows) return;  // a warp of its own comes to no barrier
    const bool real = wanted < rows;
    const long long start = static_cast<long long>(min(wanted, rows - 1)) * cols;
    float* row = shared + threadIdx.x / GROUP * cols;
    constexpr int HELD = KEPT == 1 ? HOLD : 1, AHEAD = KEPT == 1 && EARLY == 1 ? HOLD : 1;
    Values<WIDTH> kept[HELD], others[HELD], factors[AHEAD];
    float squares = 0.f;
    if constexpr (KEPT == 1)  // all loads of a row are under way before the first is waited for
        each<WIDTH, KEPT>(cols, [&](int i, int column) {
            kept[i].load(x + start + column);
            others[i].load(residual + start + column);
            if constexpr (EARLY == 1) factors[i].load(gamma + column);
        });
    each<WIDTH, KEPT>(cols, [&](int i, int column) {
        Values<WIDTH> value, other;
        if constexpr (KEPT == 1) {
            value = kept[i], other = others[i];
        } else {
            value.load(x + start + column);
            other.load(residual + start + column);
        }
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            value.v[e] += other.v[e];
            squares += value.v[e] * value.v[e];
        }
        if (real) value.store(h + start + column);
        if constexpr (KEPT == 1) kept[i] = value;
        if constexpr (KEPT == 2) value.store(row + column);
    });
    squares = sum_group(squares);
    if (!real) return;
    const float scale = 1.f / sqrtf(squares / cols + 1e-5f);
    each<WIDTH, KEPT>(cols, [&](int i, int column) {
        Values<WIDTH> value, factor;
        if constexpr (KEPT == 1) value = kept[i];
        else value.load(KEPT == 2 ? row + column : h + start + column);
        if constexpr (KEPT == 1 && EARLY == 1) factor = factors[i];
        else factor.load(gamma + column);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) value.v[e] *= scale * factor.v[e];
        value.store(y + start + column);
    });
}

#define PARAMETERS                                                                                                 \
    const float *__restrict__ x, const float *__restrict__ residual, const float *__restrict__ gamma, float *h,    \
        float *y, int rows, int cols

// For rows that fit where h is kept, with vector loads.
extern "C" __global__ void __launch_bounds__(THREADS) rmsnorm_kept(PARAMETERS) {
    normalise<VEC, KEEP>(x, residual, gamma, h, y, rows, cols);
}

// For longer rows, with vector loads.
extern "C" __global__ void __launch_bounds__(THREADS) rmsnorm_long(PARAMETERS) {
    normalise<VEC, 0>(x, residual, gamma, h, y, rows, cols);
}

// For every other shape: a row's start is only known to lie on 4 bytes.
extern "C" __global__ void __launch_bounds__(THREADS) rmsnorm_any(PARAMETERS) {
    normalise<1, 0>(x, residual, gamma, h, y, rows, cols);
}
