// A second opinion on the oracle: one thread an element, sums in float64, then float32 and bfloat16; as plain as can be.
// A bfloat16 is the upper half of a float32; half of the last place is added, and to an odd one no less (ties to even).

__device__ double widened(unsigned short upper)
{
    return __uint_as_float((unsigned)upper << 16);
}

extern "C" __global__ void reference(
    const unsigned short* a, const unsigned short* b, unsigned short* c, int m, int n, int k)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) return;
    double sum = 0.0;
    for (int i = 0; i < k; ++i)
        sum += widened(a[(long long)row * k + i]) * widened(b[(long long)i * n + column]);
    const unsigned bits = __float_as_uint((float)sum);
    c[(long long)row * n + column] = (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
