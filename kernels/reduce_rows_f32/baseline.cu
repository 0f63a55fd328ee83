// The kernel that runs today: a block of 256 threads for each row, then a tree in shared memory.

constexpr int THREADS = 256;

extern "C" __global__ void __launch_bounds__(THREADS)
reduce_rows(const float* __restrict__ x, float* __restrict__ y, int rows, int cols)
{
    __shared__ float shared[THREADS];
    const float* from = x + (long long)blockIdx.x * cols;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += THREADS) sum += from[i];
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = shared[0];
}
