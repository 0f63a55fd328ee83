// A space of column sums, y[c] = sum of x[:, c].
//
// The parameters are macros, defined above this text for each configuration:
//   WIDE     threads of a block along a row; 8 of them, and many rows of threads, take a tall block of few columns
//   HIGH     threads of a block down the rows: each takes every HIGH-th row of the block's split
//   VEC      neighbouring columns of a thread, loaded at once: 1, 2 or 4
//   FLIGHT   rows of a thread whose loads are in flight together
//   SPLIT    blocks that share columns, each with a run of rows, as gridDim.y
//   FINISH   how splits meet: 0 in a second launch, 1 in the block that takes the last ticket of its columns, all
//            threads of which add splits as they added rows
//
// Sums are taken in a fixed order, so that results are the same bits in every run.

constexpr int THREADS = WIDE * HIGH;

template <int WIDTH>
struct alignas(4 * WIDTH) Columns {
    float v[WIDTH];

    __device__ __forceinline__ Columns() {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) v[e] = 0.f;
    }

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

    // From the level-2 cache, where other blocks' stores are.
    __device__ __forceinline__ void load_others(const float* p) {
        if constexpr (WIDTH == 4) {
            const float4 q = __ldcg(reinterpret_cast<const float4*>(p));
            v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
        } else if constexpr (WIDTH == 2) {
            const float2 q = __ldcg(reinterpret_cast<const float2*>(p));
            v[0] = q.x, v[1] = q.y;
        } else {
            v[0] = __ldcg(p);
        }
    }

    __device__ __forceinline__ void store(float* p) const {
        if constexpr (WIDTH == 4) __stcg(reinterpret_cast<float4*>(p), make_float4(v[0], v[1], v[2], v[3]));
        else if constexpr (WIDTH == 2) __stcg(reinterpret_cast<float2*>(p), make_float2(v[0], v[1]));
        else __stcg(p, v[0]);
    }

    __device__ __forceinline__ void add(const Columns& other) {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) v[e] += other.v[e];
    }
};

// The block's sums of rows first to last - 1 of a matrix: the threads with threadIdx.y == 0 get them. `others`: other
// blocks of this launch wrote the matrix.
template <int WIDTH, bool others>
__device__ __forceinline__ Columns<WIDTH> sums_of(const float* matrix, int first, int last, int column, int cols) {
    Columns<WIDTH> sum;
    // `whole`: no row of this turn is missing. Loads come first, none behind a branch, and are added in pairs.
    const auto turn = [&](int row, bool whole) {
        Columns<WIDTH> v[FLIGHT];
#pragma unroll
        for (int f = 0; f < FLIGHT; ++f) {
            if (!whole && row + f * HIGH >= last) continue;
            const float* from = matrix + static_cast<long long>(row + f * HIGH) * cols + column;
            if constexpr (others) v[f].load_others(from);
            else v[f].load(from);
        }
#pragma unroll
        for (int apart = 1; apart < FLIGHT; apart *= 2)
#pragma unroll
            for (int f = 0; f + apart < FLIGHT; f += 2 * apart) v[f].add(v[f + apart]);
        sum.add(v[0]);
    };
    if (column < cols) {  // a multiple of WIDTH: whole or not at all
        int row = first + threadIdx.y;
        for (; row + (FLIGHT - 1) * HIGH < last; row += HIGH * FLIGHT) turn(row, true);
        if (FLIGHT > 1 && row < last) turn(row, false);
    }
    constexpr int APIECE = WIDE < 32 ? 32 / WIDE : 1, PARTS = HIGH / APIECE;  // rows of threads in a warp add theirs first
#pragma unroll
    for (int apart = WIDE; apart < 32; apart *= 2)
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) sum.v[e] += __shfl_xor_sync(0xffffffffu, sum.v[e], apart);
    if constexpr (PARTS > 1) {
        __shared__ Columns<WIDTH> parts[PARTS][WIDE];
        if (threadIdx.y % APIECE == 0) parts[threadIdx.y / APIECE][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0) {
#pragma unroll
            for (int part = 1; part < PARTS; ++part) sum.add(parts[part][threadIdx.x]);
        }
    }
    return sum;
}

template <int WIDTH>
__device__ __forceinline__ void reduce(const float* __restrict__ x, float* __restrict__ y, float* partial,
                                       int* tickets, int rows, int cols) {
    const int column = (blockIdx.x * WIDE + threadIdx.x) * WIDTH;
    const bool writes = threadIdx.y == 0 && column < cols;
    if (SPLIT == 1 || gridDim.y == 1) {
        const Columns<WIDTH> sum = sums_of<WIDTH, false>(x, 0, rows, column, cols);
        if (writes) sum.store(y + column);
        return;
    }
    // in 32 bits, which SPLIT times the most rows fit: a division of 64 takes longer than a short column
    const unsigned splits = gridDim.y;
    const int first = blockIdx.y * static_cast<unsigned>(rows) / splits;
    const int last = (blockIdx.y + 1) * static_cast<unsigned>(rows) / splits;
    const Columns<WIDTH> sum = sums_of<WIDTH, false>(x, first, last, column, cols);
    if (writes) sum.store(partial + static_cast<long long>(blockIdx.y) * cols + column);
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
        const Columns<WIDTH> total = sums_of<WIDTH, true>(partial, 0, splits, column, cols);
        if (writes) total.store(y + column);
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
#pragma unroll 8
    for (int s = 0; s < splits; ++s) total += partial[static_cast<long long>(s) * cols + column];
    y[column] = total;
}
#endif
