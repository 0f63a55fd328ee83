// A second opinion on the oracle: one thread a byte, which adds one to its bin; as plain as can be.

extern "C" __global__ void empty(int* counts)
{
    counts[threadIdx.x] = 0;
}

extern "C" __global__ void reference(const unsigned char* x, int* counts, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[x[i]], 1);
}
