// The kernel that runs today: a block of 1024 threads for each row, in three passes over it.
//
// First the maximum, then the sum of exp(x - maximum), then the quotients. Threads take neighbouring columns, so that
// accesses are coalesced; partial results meet in shared memory by a tree. Any number of rows and columns is right.

constexpr int THREADS = 1024;

// The maximum, or the sum, of `value` over the block; every thread gets it.
template <bool MAXIMUM>
__device__ float over_block(float value, float* shared)
{
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            const float mine = shared[threadIdx.x], other = shared[threadIdx.x + half];
            shared[threadIdx.x] = MAXIMUM ? fmaxf(mine, other) : mine + other;
        }
        __syncthreads();
    }
    const float result = shared[0];
    __syncthreads();   // the next use of `shared` must not overtake this read
    return result;
}

extern "C" __global__ void __launch_bounds__(THREADS)
softmax(const float* __restrict__ x, float* __restrict__ y, int rows, int cols)
{
    __shared__ float shared[THREADS];
    const float* from = x + (long long)blockIdx.x * cols;
    float* to = y + (long long)blockIdx.x * cols;

    float maximum = __int_as_float(0xff800000);   // minus infinity
    for (int i = threadIdx.x; i < cols; i += THREADS) maximum = fmaxf(maximum, from[i]);
    maximum = over_block<true>(maximum, shared);

    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += THREADS) sum += expf(from[i] - maximum);
    sum = over_block<false>(sum, shared);

    for (int i = threadIdx.x; i < cols; i += THREADS) to[i] = expf(from[i] - maximum) / sum;
}
