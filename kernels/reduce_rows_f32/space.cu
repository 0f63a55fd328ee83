// A space of row sums, y[r] = sum of x[r, :].
//
// The parameters are macros, defined above this text for each configuration:
//   GROUP    threads that share a row (or a split of one)
//   ROWS     rows that a block does at once, GROUP threads each
//   VEC      values of one load: 1, 2 or 4
//   FLIGHT   loads of a thread that are in flight together, each with a sum of its own
//   SPLIT    blocks that share a row, as gridDim.y
//   FINISH   how splits meet: 0 in a second launch, 1 in the block that takes a row's last ticket
//
// Sums are taken in a fixed order, so that results are the same bits in every run.

constexpr int THREADS = GROUP * ROWS, WARPS = GROUP / 32;

template <int WIDTH>
__device__ __forceinline__ float sum_of(const float* p) {
    if constexpr (WIDTH == 4) {
        const float4 q = *reinterpret_cast<const float4*>(p);
        return (q.x + q.y) + (q.z + q.w);
    } else if constexpr (WIDTH == 2) {
        const float2 q = *reinterpret_cast<const float2*>(p);
        return q.x + q.y;
    } else {
        return *p;
    }
}

// The sum over the GROUP threads of a row; every thread of the block must come here.
__device__ __forceinline__ float over_group(float sum) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
    if constexpr (WARPS > 1) {
        __shared__ float parts[ROWS][WARPS];
        const int group = threadIdx.x / GROUP, warp = threadIdx.x % GROUP / 32;
        if (threadIdx.x % 32 == 0) parts[group][warp] = sum;
        __syncthreads();
        sum = 0.f;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) sum += parts[group][w];
    }
    return sum;
}

// Rows behind the last one are done again as the last, and not stored, so that every thread comes to each barrier.
template <int WIDTH>
__device__ __forceinline__ void reduce(const float* __restrict__ x, float* __restrict__ y, float* partial,
                                       int* tickets, int rows, int cols) {
    const int wanted = blockIdx.x * ROWS + threadIdx.x / GROUP, row = min(wanted, rows - 1);
    const int splits = SPLIT == 1 ? 1 : gridDim.y, vectors = cols / WIDTH;
    // in 32 bits, which SPLIT times the most columns fit: a division of 64 takes longer than a short row
    const int first = splits == 1 ? 0 : blockIdx.y * static_cast<unsigned>(vectors) / splits;
    const int last = splits == 1 ? vectors : (blockIdx.y + 1) * static_cast<unsigned>(vectors) / splits;
    const float* from = x + static_cast<long long>(row) * cols;
    float sums[FLIGHT] = {};
    for (int i = first + threadIdx.x % GROUP; i < last; i += GROUP * FLIGHT) {
#pragma unroll
        for (int f = 0; f < FLIGHT; ++f)
            if (i + f * GROUP < last) sums[f] += sum_of<WIDTH>(from + static_cast<long long>(i + f * GROUP) * WIDTH);
    }
#pragma unroll
    for (int f = 1; f < FLIGHT; ++f) sums[0] += sums[f];
    const float sum = over_group(sums[0]);
    if (wanted >= rows || threadIdx.x % GROUP != 0) return;
    if (SPLIT == 1 || splits == 1) {
        y[row] = sum;
        return;
    }
    float* of_row = partial + static_cast<long long>(row) * splits;
    if constexpr (FINISH == 0) {
        of_row[blockIdx.y] = sum;
    } else {
        __stcg(of_row + blockIdx.y, sum);
        __threadfence();
        if (atomicAdd(tickets + row, 1) != splits - 1) return;
        __threadfence();
        tickets[row] = 0;
        float total = 0.f;
        for (int s = 0; s < splits; ++s) total += __ldcg(of_row + s);
        y[row] = total;
    }
}

// For rows whose length is a multiple of VEC.
extern "C" __global__ void __launch_bounds__(THREADS)
reduce_vectors(const float* __restrict__ x, float* __restrict__ y, float* partial, int* tickets, int rows, int cols) {
    reduce<VEC>(x, y, partial, tickets, rows, cols);
}

extern "C" __global__ void __launch_bounds__(THREADS)
reduce_any(const float* __restrict__ x, float* __restrict__ y, float* partial, int* tickets, int rows, int cols) {
    reduce<1>(x, y, partial, tickets, rows, cols);
}

#if SPLIT > 1 && FINISH == 0
// The second launch: a thread adds the splits of a row.
extern "C" __global__ void reduce_splits(const float* __restrict__ partial, float* __restrict__ y, int rows, int splits) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float total = 0.f;
    for (int s = 0; s < splits; ++s) total += partial[static_cast<long long>(row) * splits + s];
    y[row] = total;
}
#endif
