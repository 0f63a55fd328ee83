// A second opinion on the oracle: one thread an element, sums in float64, rounded once to float16; as plain as can be.
// Values are converted by the instructions for it, so that no header is needed.

__device__ double widened(unsigned short half)
{
    double value;
    asm("cvt.f64.f16 %0, %1;" : "=d"(value) : "h"(half));
    return value;
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
    unsigned short rounded;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(rounded) : "d"(sum));
    c[(long long)row * n + column] = rounded;
}
