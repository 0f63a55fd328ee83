// A space of column sums, y[c] = sum of x[:, c].
//
// The parameters are macros, defined above this text for each configuration:
//   WIDE     threads of a block along a row
//   HIGH     threads of a block down the rows: each takes every HIGH-th row of the block's split
//   VEC      neighbouring columns of a thread, loaded at once: 1, 2 or 4
//   FLIGHT   rows whose loads are in flight together, each with a sum of its own
//   SPLIT    blocks that share columns, each with a run of rows, as gridDim.y
//   FINISH   how splits meet: 0 in a second launch, 1 in the block that takes the last ticket of its columns
//
// Sums are taken in a fixed order, so that results are the same bits in every run.

constexpr int THREADS = WIDE * HIGH;

template <int WIDTH>
struct Columns {
    float v[WIDTH];

    __device__ __forceinline__ Columns() {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) v[e] = 0.f;
    }

    __device__ __forceinline__ void add(const float* p) {
        if constexpr (WIDTH == 4) {
            const float4 q = *reinterpret_cast<const float4*>(p);
            v[0] += q.x, v[1] += q.y, v[2] += q.z, v[3] += q.w;
        } else if constexpr (WIDTH == 2) {
            const float2 q = *reinterpret_cast<const float2*>(p);
            v[0] += q.x, v[1] += q.y;
        } else {
            v[0] += *p;
        }
    }

    __device__ __forceinline__ void add(const Columns& other) {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) v[e] += other.v[e];
    }
};

template <int WIDTH>
__device__ __forceinline__ void reduce(const float* __restrict__ x, float* __restrict__ y, float* partial,
                                       int* tickets, int rows, int cols) {
    const int column = (blockIdx.x * WIDE + threadIdx.x) * WIDTH, splits = gridDim.y;
    const int first = static_cast<long long>(blockIdx.y) * rows / splits;
    const int last = static_cast<long long>(blockIdx.y + 1) * rows / splits;
    Columns<WIDTH> sums[FLIGHT];
    if (column < cols) {  // a multiple of WIDTH: whole or not at all
        for (int row = first + threadIdx.y; row < last; row += HIGH * FLIGHT) {
#pragma unroll
            for (int f = 0; f < FLIGHT; ++f)
                if (row + f * HIGH < last) sums[f].add(x + static_cast<long long>(row + f * HIGH) * cols + column);
        }
#pragma unroll
        for (int f = 1; f < FLIGHT; ++f) sums[0].add(sums[f]);
    }
    if constexpr (HIGH > 1) {
        __shared__ Columns<WIDTH> parts[HIGH][WIDE];
        parts[threadIdx.y][threadIdx.x] = sums[0];
        __syncthreads();
        if (threadIdx.y == 0)
            for (int h = 1; h < HIGH; ++h) sums[0].add(parts[h][threadIdx.x]);
    }
    const bool writes = threadIdx.y == 0 && column < cols;
    if (SPLIT == 1 || splits == 1) {
        if (writes)
            for (int e = 0; e < WIDTH; ++e) y[column + e] = sums[0].v[e];
        return;
    }
    if (writes)
        for (int e = 0; e < WIDTH; ++e)
            __stcg(partial + static_cast<long long>(blockIdx.y) * cols + column + e, sums[0].v[e]);
    if constexpr (FINISH == 1) {
        __shared__ int ticket;
        __syncthreads();  // all columns of the block are written before one thread says so
        if (threadIdx.y == 0 && threadIdx.x == 0) {
            __threadfence();
            ticket = atomicAdd(tickets + blockIdx.x, 1);
            __threadfence();
        }
        __syncthreads();
        if (ticket != splits - 1) return;
        if (threadIdx.y == 0 && threadIdx.x == 0) tickets[blockIdx.x] = 0;
        if (!writes) return;
        for (int e = 0; e < WIDTH; ++e) {
            float total = 0.f;
            for (int s = 0; s < splits; ++s) total += __ldcg(partial + static_cast<long long>(s) * cols + column + e);
            y[column + e] = total;
        }
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
// The second launch: a thread adds the splits of a column.
extern "C" __global__ void reduce_splits(const float* __restrict__ partial, float* __restrict__ y, int cols, int splits) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= cols) return;
    float total = 0.f;
    for (int s = 0; s < splits; ++s) total += partial[static_cast<long long>(s) * cols + column];
    y[column] = total;
}
#endif
