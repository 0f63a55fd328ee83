// A space of products of a CSR matrix and a vector.
//
// The parameters are macros, defined above this text for each configuration:
//   THREADS  of a block
//   WAY      0: LANES threads share a row
//            1: threads share the matrix evenly, whatever its rows are (Merrill and Garland, "Merge-based Parallel Sparse
//               Matrix-Vector Multiplication", 2016): rows and entries together are cut into runs of ITEMS, one a thread;
//               a thread leaves the sum of the row that goes on behind its run, and a second launch adds these
//            2: a block has THREADS / LANES rows, and its threads share the products of these, neighbours taking neighbours,
//               by way of shared memory (Greathouse and Daga, "Efficient Sparse Matrix-Vector Multiplication on GPUs
//               Using the CSR Storage Format", 2014); then LANES threads add those of a row
//   LANES    with WAY 0 and 2
//   FLIGHT   with WAY 0: entries of a thread that are in flight together
//   ITEMS    with WAY 1, and with WAY 2: entries of a thread that are in flight together
//
// Sums are taken in a fixed order, so that results are the same bits in every run.

#if WAY == 0
extern "C" __global__ void __launch_bounds__(THREADS)
spmv_rows(const int* __restrict__ offsets, const int* __restrict__ columns, const float* __restrict__ values,
          const float* __restrict__ x, float* __restrict__ y, int rows) {
    const int wanted = (blockIdx.x * THREADS + threadIdx.x) / LANES, row = min(wanted, rows - 1);
    const int last = offsets[row + 1];
    int e = offsets[row] + static_cast<int>(threadIdx.x) % LANES;
    float sum = 0.f;
    while (e < last) {  // in parts of 512 steps: a chain of all of a long row's additions would lose too much
        float sums[FLIGHT] = {};
        for (int step = 0; step < 512 && e < last; ++step, e += LANES * FLIGHT) {
#pragma unroll
            for (int f = 0; f < FLIGHT; ++f)
                if (e + f * LANES < last) sums[f] += values[e + f * LANES] * x[columns[e + f * LANES]];
        }
#pragma unroll
        for (int f = 0; f < FLIGHT; ++f) sum += sums[f];
    }
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
    if (wanted < rows && threadIdx.x % LANES == 0) y[row] = sum;
}

#elif WAY == 2
extern "C" __global__ void __launch_bounds__(THREADS)
spmv_tiles(const int* __restrict__ offsets, const int* __restrict__ columns, const float* __restrict__ values,
           const float* __restrict__ x, float* __restrict__ y, int rows) {
    constexpr int ROWS = THREADS / LANES, TILE = THREADS * ITEMS;
    __shared__ float products[TILE];
    const int row0 = blockIdx.x * ROWS, row = row0 + threadIdx.x / LANES;
    const int begin = offsets[row0], end = offsets[min(row0 + ROWS, rows)];
    const int first = offsets[min(row, rows)], last = offsets[min(row + 1, rows)];
    double total = 0.;  // a long row has many tiles, whose chain of additions would lose too much in float
    for (int start = begin; start < end; start += TILE) {
        const int count = min(TILE, end - start);
        int column[ITEMS];
        float value[ITEMS], factor[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const int at = i * THREADS + threadIdx.x;
            column[i] = at < count ? columns[start + at] : -1;
            value[i] = at < count ? values[start + at] : 0.f;
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) factor[i] = column[i] >= 0 ? x[column[i]] : 0.f;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) products[i * THREADS + threadIdx.x] = value[i] * factor[i];
        __syncthreads();
        float sum = 0.f;
        for (int at = max(first - start, 0) + threadIdx.x % LANES; at < min(last - start, count); at += LANES)
            sum += products[at];
        total += sum;
        __syncthreads();  // the next tile's products take the place of these
    }
    float sum = total;
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
    if (row < rows && threadIdx.x % LANES == 0) y[row] = sum;
}

#else
extern "C" __global__ void __launch_bounds__(THREADS)
spmv_runs(const int* __restrict__ offsets, const int* __restrict__ columns, const float* __restrict__ values,
          const float* __restrict__ x, float* __restrict__ y, int* __restrict__ open_rows, float* __restrict__ open_sums,
          int rows, int entries, int runs) {
    const int run = blockIdx.x * THREADS + threadIdx.x;
    if (run >= runs) return;
    const long long begin = static_cast<long long>(run) * ITEMS, whole = static_cast<long long>(rows) + entries;
    // Of the first `begin` items, `row` are ends of rows and the rest are entries: an end comes behind its entries.
    int row = static_cast<int>(max(0ll, begin - entries)), high = static_cast<int>(min(begin, (long long)rows));
    while (row < high) {
        const int middle = row + (high - row) / 2;
        if (offsets[middle + 1] <= begin - middle - 1) row = middle + 1;
        else high = middle;
    }
    int entry = static_cast<int>(begin - row);
    const int items = static_cast<int>(min((long long)ITEMS, whole - begin));
    float sum = 0.f;
    for (int i = 0; i < items; ++i) {
        if (entry < offsets[row + 1]) {
            sum += values[entry] * x[columns[entry]];
            ++entry;
        } else {
            y[row] = sum;
            sum = 0.f;
            ++row;
        }
    }
    open_rows[run] = row;
    open_sums[run] = sum;
}

// The first run that leaves a row open adds what all runs left of it: before, y holds what the row's last run saw.
extern "C" __global__ void __launch_bounds__(THREADS)
spmv_open(float* __restrict__ y, const int* __restrict__ open_rows, const float* __restrict__ open_sums, int rows,
          int runs) {
    const int run = blockIdx.x * THREADS + threadIdx.x;
    if (run >= runs) return;
    const int row = open_rows[run];
    if (row >= rows || (run > 0 && open_rows[run - 1] == row)) return;
    double sum = y[row];  // a long row has many runs, whose chain of additions would lose too much in float
    for (int r = run; r < runs && open_rows[r] == row; ++r) sum += open_sums[r];
    y[row] = static_cast<float>(sum);
}
#endif
