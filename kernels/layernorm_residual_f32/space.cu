// A space of residual add and layer norm: h = x + residual, y = (h - mean) / sqrt(variance + 1e-5) * gamma + beta.
//
// The parameters are macros, defined above this text for each configuration:
//   GROUP    threads that share a row
//   ROWS     rows that a block does at once, GROUP threads each
//   VEC      values of one load: 1, 2 or 4
//   KEEP     where h waits between the passes: 0 in global memory, 1 in registers, 2 in shared memory
//   HOLD     with KEEP 1: loads of a row that a thread keeps
//   WELFORD  1: mean and variance by parts that are joined, with one barrier; 0: the mean, then the deviations from it
//   EARLY    1: gamma and beta are loaded before the barriers of the sums, so that they are there in time; 0: after them.
//            With KEEP 1 only
//
// A thread reads again only what it wrote itself, so no barrier lies between the passes but those of the sums.

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

// What is known of a part of a row: how many values, their mean, and the sum of squared deviations from it (Chan, Golub
// and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
struct Part {
    float count, mean, squares;

    __device__ __forceinline__ void join(float other_count, float other_mean, float other_squares) {
        const float both = count + other_count;
        if (both == 0.f) return;
        const float apart = other_mean - mean, share = other_count / both;
        mean += apart * share;
        squares += other_squares + apart * apart * count * share;
        count = both;
    }
};

template <int LANES>
__device__ __forceinline__ float sum_of_lanes(float value) {
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2) value += __shfl_xor_sync(0xffffffffu, value, apart);
    return value;
}

// The part of so many neighbouring lanes: their common mean first, then each part's deviations from it. Every lane adds
// the same pairs, so that all get the same bits.
template <int LANES>
__device__ __forceinline__ Part join_lanes(Part p) {
    const float count = sum_of_lanes<LANES>(p.count), sum = sum_of_lanes<LANES>(p.count * p.mean);
    const float mean = count == 0.f ? 0.f : sum / count, apart = p.mean - mean;
    return {count, mean, sum_of_lanes<LANES>(p.squares + p.count * apart * apart)};
}

__device__ __forceinline__ Part join_group(Part p) {
    p = join_lanes<32>(p);
    if constexpr (WARPS > 1) {
        __shared__ Part parts[ROWS][WARPS];
        const int group = threadIdx.x / GROUP, warp = threadIdx.x % GROUP / 32;
        if (threadIdx.x % 32 == 0) parts[group][warp] = p;
        __syncthreads();
        p = join_lanes<WARPS>(parts[group][threadIdx.x % WARPS]);
    }
    return p;
}

using Sums = float[ROWS][WARPS];

// Every thread of the block must come here; `sums` is used once.
__device__ __forceinline__ float sum_group(float sum, Sums& sums) {
    sum = sum_of_lanes<32>(sum);
    if constexpr (WARPS > 1) {
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
                                          const float* __restrict__ gamma, const float* __restrict__ beta, float* h,
                                          float* y, int rows, int cols) {
    extern __shared__ __align__(16) float shared[];
    const int wanted = blockIdx.x * ROWS + threadIdx.x / GROUP;
    if (WARPS == 1 && wanted >= rows) return;  // a warp of its own comes to no barrier
    const bool real = wanted < rows;
    const long long start = static_cast<long long>(min(wanted, rows - 1)) * cols;
    float* row = shared + threadIdx.x / GROUP * cols;
    constexpr int HELD = KEPT == 1 ? HOLD : 1, AHEAD = KEPT == 1 && EARLY == 1 ? HOLD : 1;
    Values<WIDTH> kept[HELD], others[HELD], factors[AHEAD], shifts[AHEAD];
    Part part = {0.f, 0.f, 0.f};
    float sum = 0.f;
    if constexpr (KEPT == 1)  // all loads of a row are under way before the first is waited for
        each<WIDTH, KEPT>(cols, [&](int i, int column) {
            kept[i].load(x + start + column);
            others[i].load(residual + start + column);
        });
    if constexpr (KEPT == 1 && EARLY == 1)
        each<WIDTH, KEPT>(cols, [&](int i, int column) {
            factors[i].load(gamma + column);
            shifts[i].load(beta + column);
        });
    each<WIDTH, KEPT>(cols, [&](int i, int column) {
        Values<WIDTH> value, other;
        if constexpr (KEPT == 1) {
            value = kept[i], other = others[i];
        } else {
            value.load(x + start + column);
            other.load(residual + start + column);
        }
        float total = 0.f;
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) total += value.v[e] += other.v[e];
        if (real) value.store(h + start + column);
        if constexpr (KEPT == 1) kept[i] = value;
        if constexpr (KEPT == 2) value.store(row + column);
        sum += total;
        if constexpr (WELFORD == 1 && KEPT == 1) part.count += WIDTH;
        if constexpr (WELFORD == 1 && KEPT != 1) {
            const float mean = total / WIDTH;
            float squares = 0.f;
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) squares += (value.v[e] - mean) * (value.v[e] - mean);
            part.join(WIDTH, mean, squares);
        }
    });
    const auto again = [&](int i, int column) {
        Values<WIDTH> value;
        if constexpr (KEPT == 1) value = kept[i];
        else if constexpr (KEPT == 2) value.load(row + column);
        else if (real) value.load(h + start + column);
        else value = Values<WIDTH>{};
        return value;
    };
    __shared__ Sums sums, squares;
    if constexpr (WELFORD == 1) {
        if constexpr (KEPT == 1) {
            part.mean = part.count == 0.f ? 0.f : sum / part.count;
            each<WIDTH, KEPT>(cols, [&](int i, int) {
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) part.squares += (kept[i].v[e] - part.mean) * (kept[i].v[e] - part.mean);
            });
        }
        part = join_group(part);
    } else {
        part.mean = sum_group(sum, sums) / cols;
        each<WIDTH, KEPT>(cols, [&](int i, int column) {
            const Values<WIDTH> value = again(i, column);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) part.squares += (value.v[e] - part.mean) * (value.v[e] - part.mean);
        });
        part.squares = sum_group(part.squares, squares);
    }
    if (!real) return;
    const float scale = 1.f / sqrtf(part.squares / cols + 1e-5f);
    each<WIDTH, KEPT>(cols, [&](int i, int column) {
        Values<WIDTH> value = again(i, column), factor, shift;
        if constexpr (KEPT == 1 && EARLY == 1) {
            factor = factors[i], shift = shifts[i];
        } else {
            factor.load(gamma + column);
            shift.load(beta + column);
        }
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) value.v[e] = (value.v[e] - part.mean) * scale * factor.v[e] + shift.v[e];
        value.store(y + start + column);
    });
}

#define PARAMETERS                                                                                                 \
    const float *__restrict__ x, const float *__restrict__ residual, const float *__restrict__ gamma,              \
        const float *__restrict__ beta, float *h, float *y, int rows, int cols

// For rows that fit where h is kept, with vector loads.
extern "C" __global__ void __launch_bounds__(THREADS) layernorm_kept(PARAMETERS) {
    normalise<VEC, KEEP>(x, residual, gamma, beta, h, y, rows, cols);
}

// For longer rows, with vector loads.
extern "C" __global__ void __launch_bounds__(THREADS) layernorm_long(PARAMETERS) {
    normalise<VEC, 0>(x, residual, gamma, beta, h, y, rows, cols);
}

// For every other shape: a row's start is only known to lie on 4 bytes.
extern "C" __global__ void __launch_bounds__(THREADS) layernorm_any(PARAMETERS) {
    normalise<1, 0>(x, residual, gamma, beta, h, y, rows, cols);
}
