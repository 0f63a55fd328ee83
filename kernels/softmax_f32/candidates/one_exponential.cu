// As the baseline, but an exponential is taken once: it waits in y between the sum and the quotient, which becomes one
// multiplication by the reciprocal.

constexpr int THREADS = 256;

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
    __syncthreads();
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
    for (int i = threadIdx.x; i < cols; i += THREADS) {
        const float value = expf(from[i] - maximum);
        to[i] = value;
        sum += value;
    }
    const float share = 1.0f / over_block<false>(sum, shared);

    for (int i = threadIdx.x; i < cols; i += THREADS) to[i] *= share;
}
