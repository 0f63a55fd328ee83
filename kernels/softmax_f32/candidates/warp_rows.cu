// A row softmax that reads each row once where it fits into registers, and takes each exponential once.
//
// `softmax_warp`: a warp for each row of up to 1024 columns, four rows a block. A lane holds every 32nd element in
// registers from the first read to the last write; maximum and sum travel by shuffles, so there is neither shared
// memory nor a barrier. `softmax_block`: longer rows, a block of 256 threads each, with exponentials kept in y
// between the sum and the quotient.

constexpr int LANES = 32;
constexpr int ROWS = 4;          // warps, and so rows, of a block of softmax_warp
constexpr int HELD = 32;         // elements of a row that a lane holds
constexpr int THREADS = 256;     // of softmax_block
constexpr unsigned ALL = 0xffffffffu;

__device__ __forceinline__ float lowest() { return __int_as_float(0xff800000); }

__device__ __forceinline__ float warp_maximum(float value)
{
    for (int step = LANES / 2; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(ALL, value, step));
    return value;
}

__device__ __forceinline__ float warp_sum(float value)
{
    for (int step = LANES / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
    return value;
}

extern "C" __global__ void __launch_bounds__(LANES * ROWS)
softmax_warp(const float* __restrict__ x, float* __restrict__ y, int rows, int cols)
{
    const int row = blockIdx.x * ROWS + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    if (row >= rows) return;    // the whole warp leaves together
    const float* from = x + (long long)row * cols;
    float* to = y + (long long)row * cols;

    float held[HELD];
    float maximum = lowest();
    #pragma unroll
    for (int i = 0; i < HELD; ++i) {
        if (i * LANES >= cols) break;
        const int column = i * LANES + lane;
        held[i] = column < cols ? from[column] : lowest();
        maximum = fmaxf(maximum, held[i]);
    }
    maximum = warp_maximum(maximum);

    float sum = 0.0f;
    #pragma unroll
    for (int i = 0; i < HELD; ++i) {
        if (i * LANES >= cols) break;
        held[i] = expf(held[i] - maximum);
        sum += held[i];
    }
    sum = warp_sum(sum);

    #pragma unroll
    for (int i = 0; i < HELD; ++i) {
        if (i * LANES >= cols) break;
        const int column = i * LANES + lane;
        if (column < cols) to[column] = held[i] / sum;
    }
}

// The maximum, or the sum, of `value` over the block's eight warps; every thread gets it.
template <bool MAXIMUM>
__device__ __forceinline__ float over_block(float value, float* shared)
{
    value = MAXIMUM ? warp_maximum(value) : warp_sum(value);
    if (threadIdx.x % LANES == 0) shared[threadIdx.x / LANES] = value;
    __syncthreads();
    float result = shared[0];
    #pragma unroll
    for (int warp = 1; warp < THREADS / LANES; ++warp)
        result = MAXIMUM ? fmaxf(result, shared[warp]) : result + shared[warp];
    return result;
}

extern "C" __global__ void __launch_bounds__(THREADS)
softmax_block(const float* __restrict__ x, float* __restrict__ y, int rows, int cols)
{
    __shared__ float maxima[THREADS / LANES], sums[THREADS / LANES];
    const float* from = x + (long long)blockIdx.x * cols;
    float* to = y + (long long)blockIdx.x * cols;

    float maximum = lowest();
    for (int i = threadIdx.x; i < cols; i += THREADS) maximum = fmaxf(maximum, from[i]);
    maximum = over_block<true>(maximum, maxima);

    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += THREADS) {
        const float value = expf(from[i] - maximum);
        to[i] = value;    // read back by this thread alone
        sum += value;
    }
    sum = over_block<false>(sum, sums);

    for (int i = threadIdx.x; i < cols; i += THREADS) to[i] /= sum;
}
