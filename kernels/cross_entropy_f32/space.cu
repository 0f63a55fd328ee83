// A space of cross entropies, loss[r] = log(sum exp(logits[r, :])) - logits[r, labels[r]].
//
// The parameters are macros, defined above this text for each configuration:
//   GROUP    threads that share a row (or a split of one)
//   ROWS     rows that a block does at once, GROUP threads each
//   VEC      logits of one load: 1, 2 or 4
//   ONLINE   how often a row is read: 0 twice (the maximum, then the sum); 1 once, each value moving the maximum as it
//            comes; 2 once, FLIGHT loads at a time with one new maximum for all of them
//   FLIGHT   loads of a thread that are in flight together
//   SPLIT    blocks that share a row, as gridDim.y; the one with the row's last ticket joins their parts
//
// Parts are joined in a fixed order, so that results are the same bits in every run.

constexpr int THREADS = GROUP * ROWS, WARPS = GROUP / 32;

__device__ __forceinline__ float lowest() {
    return __int_as_float(0xff800000);  // minus infinity
}

template <int WIDTH>
__device__ __forceinline__ void get(const float* p, float* v) {
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

// What a sum of powers is multiplied with where its maximum gives way to a greater or equal one.
__device__ __forceinline__ float moved(float maximum, float to) {
    return expf(maximum == to ? 0.f : maximum - to);  // for two of minus infinity the difference would be NaN
}

// What is known of a part of a row: its maximum, and the sum of exp(x - maximum). An empty part is {-inf, 0}.
struct Part {
    float maximum, sum;

    __device__ __forceinline__ void join(float other_maximum, float other_sum) {
        const float both = fmaxf(maximum, other_maximum), less = fminf(maximum, other_maximum);
        const float factor = moved(less, both);
        sum = maximum == both ? sum + other_sum * factor : sum * factor + other_sum;
        maximum = both;
    }
};

// The part of so many neighbouring lanes: first the maximum, so that each lane moves its sum once.
template <int LANES>
__device__ __forceinline__ Part join_lanes(Part p) {
    float maximum = p.maximum;
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2)
        maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, apart));
    p.sum *= moved(p.maximum, maximum);
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2) p.sum += __shfl_xor_sync(0xffffffffu, p.sum, apart);
    p.maximum = maximum;
    return p;
}

using Parts = Part[ROWS][WARPS];

// Every thread of the block must come here; `parts` is used once.
__device__ __forceinline__ Part join_group(Part p, Parts& parts) {
    p = join_lanes<32>(p);
    if constexpr (WARPS > 1) {
        const int group = threadIdx.x / GROUP, warp = threadIdx.x % GROUP / 32;
        if (threadIdx.x % 32 == 0) parts[group][warp] = p;
        __syncthreads();
        p = join_lanes<WARPS>(parts[group][threadIdx.x % WARPS]);
    }
    return p;
}

// The thread's values of columns `first` to `last` - 1, FLIGHT loads at a time; missing ones are minus infinity.
template <int WIDTH, class Body>
__device__ __forceinline__ void each(const float* row, int first, int last, Body body) {
    for (int i = first + threadIdx.x % GROUP; i < last; i += GROUP * FLIGHT) {
        float v[FLIGHT * WIDTH];
#pragma unroll
        for (int e = 0; e < FLIGHT * WIDTH; ++e) v[e] = lowest();
#pragma unroll
        for (int f = 0; f < FLIGHT; ++f)
            if (i + f * GROUP < last) get<WIDTH>(row + static_cast<long long>(i + f * GROUP) * WIDTH, v + f * WIDTH);
        body(v);
    }
}

template <int WIDTH>
__device__ __forceinline__ Part part_of(const float* row, int first, int last) {
    constexpr int MANY = FLIGHT * WIDTH;
    Part p = {lowest(), 0.f};
    if constexpr (ONLINE == 0) {
        each<WIDTH>(row, first, last, [&](const float* v) {
#pragma unroll
            for (int e = 0; e < MANY; ++e) p.maximum = fmaxf(p.maximum, v[e]);
        });
        __shared__ Parts maxima;
        p = join_group(p, maxima);  // the sums are zero so far
        if (p.maximum == lowest()) return p;
        p.sum = 0.f;
        each<WIDTH>(row, first, last, [&](const float* v) {
#pragma unroll
            for (int e = 0; e < MANY; ++e) p.sum += expf(v[e] - p.maximum);
        });
    } else if constexpr (ONLINE == 1) {
        each<WIDTH>(row, first, last, [&](const float* v) {
#pragma unroll
            for (int e = 0; e < MANY; ++e) p.join(v[e], v[e] == lowest() ? 0.f : v[e] == v[e] ? 1.f : v[e]);  // NaN stays
        });
    } else {
        each<WIDTH>(row, first, last, [&](const float* v) {
            float both = p.maximum, more = 0.f;
#pragma unroll
            for (int e = 0; e < MANY; ++e) both = fmaxf(both, v[e]);
            const float from = both == lowest() ? 0.f : both;
#pragma unroll
            for (int e = 0; e < MANY; ++e) more += expf(v[e] - from);
            p = {both, p.sum * moved(p.maximum, both) + more};
        });
    }
    return p;
}

// Rows behind the last one are done again as the last, and not stored, so that every thread comes to each barrier.
template <int WIDTH>
__device__ __forceinline__ void entropy(const float* __restrict__ logits, const int* __restrict__ labels,
                                        float* __restrict__ loss, float2* partial, int* tickets, int rows, int classes) {
    const int wanted = blockIdx.x * ROWS + threadIdx.x / GROUP, row = min(wanted, rows - 1);
    const int splits = SPLIT == 1 ? 1 : gridDim.y, vectors = classes / WIDTH;
    const float* own = logits + static_cast<long long>(row) * classes;
    // in 32 bits, which SPLIT times the most classes fit: a division of 64 takes longer than a short row
    const int first = splits == 1 ? 0 : blockIdx.y * static_cast<unsigned>(vectors) / splits;
    const int last = splits == 1 ? vectors : (blockIdx.y + 1) * static_cast<unsigned>(vectors) / splits;
    // The label comes together with the row, and its logit while parts are joined.
    const bool says = wanted < rows && threadIdx.x % GROUP == 0;
    int label = says ? labels[row] : 0;
    Part p = part_of<WIDTH>(own, first, last);
    asm volatile("" : "+r"(label));  // nothing is made of it, and waits for it, before the row's loads
    const float of_label = says ? own[label] : 0.f;
    __shared__ Parts parts;
    p = join_group(p, parts);
    if (!says) return;
    if (SPLIT > 1 && splits > 1) {
        float2* of_row = partial + static_cast<long long>(row) * splits;
        __stcg(of_row + blockIdx.y, make_float2(p.maximum, p.sum));
        __threadfence();
        if (atomicAdd(tickets + row, 1) != splits - 1) return;
        __threadfence();
        tickets[row] = 0;
        p = {lowest(), 0.f};
        for (int s = 0; s < splits; ++s) {
            const float2 other = __ldcg(of_row + s);
            p.join(other.x, other.y);
        }
    }
    loss[row] = logf(p.sum) + (p.maximum - of_label);
}

#define PARAMETERS                                                                                             \
    const float *__restrict__ logits, const int *__restrict__ labels, float *__restrict__ loss,                \
        float2 *partial, int *tickets, int rows, int classes

// For rows whose length is a multiple of VEC.
extern "C" __global__ void __launch_bounds__(THREADS) entropy_vectors(PARAMETERS) {
    entropy<VEC>(logits, labels, loss, partial, tickets, rows, classes);
}

extern "C" __global__ void __launch_bounds__(THREADS) entropy_any(PARAMETERS) {
    entropy<1>(logits, labels, loss, partial, tickets, rows, classes);
}
