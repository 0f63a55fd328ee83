// The kernel that runs today: a block of 256 threads for each row, in two passes: add and sum of squares, result.

constexpr int THREADS = 256;

// The sum over the block; every thread gets it.
__device__ float over_block(float value, float* shared)
{
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    return shared[0];
}

extern "C" __global__ void __launch_bounds__(THREADS)
rmsnorm(const float* __restrict__ x, const float* __restrict__ residual, const float* __restrict__ gamma,
        float* h, float* y, int rows, int cols)
{
    __shared__ float shared[THREADS];
    const long long start = (long long)blockIdx.x * cols;

    float squares = 0.0f;
    for (int i = threadIdx.x; i < cols; i += THREADS) {
        const float value = x[start + i] + residual[start + i];
        h[start + i] = value;
        squares += value * value;
    }
    const float scale = 1.0f / sqrtf(over_block(squares, shared) / cols + 1e-5f);

    for (int i = threadIdx.x; i < cols; i += THREADS) y[start + i] = h[start + i] * scale * gamma[i];
}
