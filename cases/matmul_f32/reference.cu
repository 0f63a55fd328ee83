// A second opinion on the oracle: one thread an element, sums in float64, as plain as can be.

extern "C" __global__ void reference(const float* a, const float* b, float* c, int m, int n, int k)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) return;
    double sum = 0.0;
    for (int i = 0; i < k; ++i)
        sum += (double)a[(long long)row * k + i] * (double)b[(long long)i * n + column];
    c[(long long)row * n + column] = (float)sum;
}
