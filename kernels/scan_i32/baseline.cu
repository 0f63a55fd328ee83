// What runs today, in three launches: scans of 512 values a block, a scan of the blocks' sums, and their addition.

constexpr int THREADS = 512;

// The inclusive scan over the block.
__device__ int over_block(int value, int* shared)
{
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int apart = 1; apart < THREADS; apart *= 2) {
        const int other = threadIdx.x >= apart ? shared[threadIdx.x - apart] : 0;
        __syncthreads();
        shared[threadIdx.x] += other;
        __syncthreads();
    }
    return shared[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(THREADS)
scan_blocks(const int* __restrict__ x, int* __restrict__ y, int* __restrict__ sums, int n)
{
    __shared__ int shared[THREADS];
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const int sum = over_block(i < n ? x[i] : 0, shared);
    if (i < n) y[i] = sum;
    if (threadIdx.x == THREADS - 1) sums[blockIdx.x] = sum;
}

// One block: sums[b] becomes the sum of all blocks before b.
extern "C" __global__ void __launch_bounds__(THREADS) scan_sums(int* sums, int blocks)
{
    __shared__ int shared[THREADS];
    int before = 0;
    for (int start = 0; start < blocks; start += THREADS) {
        const int i = start + threadIdx.x, own = i < blocks ? sums[i] : 0;
        const int sum = over_block(own, shared);
        if (i < blocks) sums[i] = before + sum - own;
        before += shared[THREADS - 1];
        __syncthreads();   // the next turn must not overtake this read
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
add_sums(int* __restrict__ y, const int* __restrict__ sums, int n)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n) y[i] += sums[blockIdx.x];
}
