// A space of row-wise single-precision softmaxes, y[r, c] = exp(x[r, c] - max x[r, :]) / sum exp(x[r, :] - max x[r, :]).
//
// The parameters are macros, defined above this text for each configuration:
//   GROUP    threads that share a row: 32 (a warp, for narrow rows) or more
//   ROWS     rows that a block does at once, GROUP threads each
//   VEC      values of one load: 1, 2 or 4
//   HOLD     loads of a row that a thread keeps in registers: rows of up to GROUP * VEC * HOLD values are read once
//   ONLINE   longer rows are read twice (1: maximum and sum in one pass) or three times (0: one after the other)
//
// Rows with infinities or NaN give what the formula gives.

constexpr int THREADS = GROUP * ROWS, WARPS = GROUP / 32;

__device__ __forceinline__ float lowest() {
    return __int_as_float(0xff800000);  // minus infinity
}

// A term of a sum over values of at most `maximum`. Where all of them are minus infinity their sum is zero so far;
// subtracting the maximum would make it NaN. Plus infinity gives NaN, as the formula does.
__device__ __forceinline__ float term(float x, float maximum) {
    return expf(x - (maximum == lowest() ? 0.f : maximum));
}

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

// What a sum of powers is multiplied with where its maximum gives way to a greater or equal one.
__device__ __forceinline__ float moved(float maximum, float to) {
    return expf(maximum == to ? 0.f : maximum - to);  // for two of minus infinity the difference would be NaN
}

// What is known of a part of a row: its maximum, and the sum of exp(x - maximum).
struct Part {
    float maximum, sum;

    __device__ __forceinline__ void join(float other_maximum, float other_sum) {
        const float both = fmaxf(maximum, other_maximum), less = fminf(maximum, other_maximum);
        const float factor = moved(less, both);
        sum = maximum == both ? sum + other_sum * factor : sum * factor + other_sum;
        maximum = both;
    }
};

template <int LANES>
__device__ __forceinline__ float maximum_of_lanes(float value) {
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, apart));
    return value;
}

template <int LANES>
__device__ __forceinline__ float sum_of_lanes(float value) {
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2) value += __shfl_xor_sync(0xffffffffu, value, apart);
    return value;
}

// The part of so many neighbouring lanes: first the maximum, so that each lane moves its sum once.
template <int LANES>
__device__ __forceinline__ Part join_lanes(Part p) {
    const float maximum = maximum_of_lanes<LANES>(p.maximum);
    return {maximum, sum_of_lanes<LANES>(p.sum * moved(p.maximum, maximum))};
}

using Parts = Part[ROWS][WARPS];

// The group's part, from its warps', which all lanes of a warp have. Every thread of the block must come here; `parts`
// is used once.
__device__ __forceinline__ Part join_warps(Part p, Parts& parts) {
    if constexpr (WARPS > 1) {
        const int group = threadIdx.x / GROUP, warp = threadIdx.x % GROUP / 32;
        if (threadIdx.x % 32 == 0) parts[group][warp] = p;
        __syncthreads();
        p = join_lanes<WARPS>(parts[group][threadIdx.x % WARPS]);
    }
    return p;
}

__device__ __forceinline__ Part join_group(Part p, Parts& parts) {
    return join_warps(join_lanes<32>(p), parts);
}

template <int WIDTH>
__device__ __forceinline__ Part part_of(const Values<WIDTH>& x) {
    Part p = {x.v[0], 0.f};
#pragma unroll
    for (int e = 1; e < WIDTH; ++e) p.maximum = fmaxf(p.maximum, x.v[e]);
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) p.sum += term(x.v[e], p.maximum);
    return p;
}

template <int WIDTH>
__device__ __forceinline__ void finish(Values<WIDTH>& x, float maximum, float scale) {
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) x.v[e] = expf(x.v[e] - maximum) * scale;
}

// Every thread of a block comes to each barrier: rows behind the last one are done again as the last, and not stored.
__device__ __forceinline__ int row_of(int rows) {
    return min(blockIdx.x * ROWS + threadIdx.x / GROUP, rows - 1);
}

__device__ __forceinline__ bool is_real(int rows) {
    return blockIdx.x * ROWS + threadIdx.x / GROUP < rows;
}

// Rows of at most GROUP * WIDTH * HOLD values, whose count is a multiple of WIDTH.
template <int WIDTH>
__device__ __forceinline__ void held(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const long long start = static_cast<long long>(row_of(rows)) * cols;
    const int first = threadIdx.x % GROUP * WIDTH;
    Values<WIDTH> kept[HOLD];
    float maximum = lowest();
#pragma unroll
    for (int i = 0; i < HOLD; ++i) {
        const int column = first + i * GROUP * WIDTH;
        if (column >= cols) continue;
        kept[i].load(x + start + column);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) maximum = fmaxf(maximum, kept[i].v[e]);
    }
    // Each exponential is taken once: of the distance to the warp's maximum, which goes to the row's by one factor.
    Part own = {maximum_of_lanes<32>(maximum), 0.f};
#pragma unroll
    for (int i = 0; i < HOLD; ++i) {
        if (first + i * GROUP * WIDTH >= cols) continue;
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) own.sum += kept[i].v[e] = term(kept[i].v[e], own.maximum);
    }
    own.sum = sum_of_lanes<32>(own.sum);
    __shared__ Parts parts;
    const Part p = join_warps(own, parts);
    if (!is_real(rows)) return;
    const float scale = moved(own.maximum, p.maximum) / p.sum;
#pragma unroll
    for (int i = 0; i < HOLD; ++i) {
        const int column = first + i * GROUP * WIDTH;
        if (column >= cols) continue;
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) kept[i].v[e] *= scale;
        kept[i].store(y + start + column);
    }
}

// Rows of any length that is a multiple of WIDTH.
template <int WIDTH>
__device__ __forceinline__ void streamed(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    const long long start = static_cast<long long>(row_of(rows)) * cols;
    const int first = threadIdx.x % GROUP * WIDTH;
    Part p = {lowest(), 0.f};
    if constexpr (ONLINE == 1) {
        for (int column = first; column < cols; column += GROUP * WIDTH) {
            Values<WIDTH> values;
            values.load(x + start + column);
            const Part part = part_of(values);
            p.join(part.maximum, part.sum);
        }
    } else {
        for (int column = first; column < cols; column += GROUP * WIDTH) {
            Values<WIDTH> values;
            values.load(x + start + column);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) p.maximum = fmaxf(p.maximum, values.v[e]);
        }
        __shared__ Parts maxima;
        p = join_group(p, maxima);  // the sums are zero so far
        const float maximum = p.maximum;
        p.sum = 0.f;
        for (int column = first; column < cols; column += GROUP * WIDTH) {
            Values<WIDTH> values;
            values.load(x + start + column);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) p.sum += term(values.v[e], maximum);
        }
    }
    __shared__ Parts parts;
    p = join_group(p, parts);
    if (!is_real(rows)) return;
    const float scale = 1.f / p.sum;
    for (int column = first; column < cols; column += GROUP * WIDTH) {
        Values<WIDTH> values;
        values.load(x + start + column);
        finish(values, p.maximum, scale);
        values.store(y + start + column);
    }
}

// For rows that fit the registers, with vector loads.
extern "C" __global__ void __launch_bounds__(THREADS)
softmax_held(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    held<VEC>(x, y, rows, cols);
}

// For longer rows, with vector loads.
extern "C" __global__ void __launch_bounds__(THREADS)
softmax_streamed(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    streamed<VEC>(x, y, rows, cols);
}

// For every other shape: a row's start is only known to lie on 4 bytes.
extern "C" __global__ void __launch_bounds__(THREADS)
softmax_any(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    streamed<1>(x, y, rows, cols);
}
