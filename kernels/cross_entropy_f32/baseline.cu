// The kernel that runs today: a block of 256 threads for each row, in two passes: the maximum, then the sum.

constexpr int THREADS = 256;

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
cross_entropy(const float* __restrict__ logits, const int* __restrict__ labels, float* __restrict__ loss, int rows,
              int classes)
{
    __shared__ float shared[THREADS];
    const float* row = logits + (long long)blockIdx.x * classes;
    float maximum = __int_as_float(0xff800000);   // minus infinity
    for (int i = threadIdx.x; i < classes; i += THREADS) maximum = fmaxf(maximum, row[i]);
    maximum = over_block<true>(maximum, shared);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < classes; i += THREADS) sum += expf(row[i] - maximum);
    sum = over_block<false>(sum, shared);
    if (threadIdx.x == 0) loss[blockIdx.x] = logf(sum) + (maximum - row[labels[blockIdx.x]]);
}
