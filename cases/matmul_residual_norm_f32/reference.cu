// A second opinion on the oracle: one thread an element of h, then one a row of y; everything in float64, as plain as
// can be. `sums` holds h as it is before it is rounded.

extern "C" __global__ void product(
    const float* a, const float* b, const float* residual, double* sums, float* h, int m, int n, int k)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) return;
    double sum = residual[(long long)row * n + column];
    for (int i = 0; i < k; ++i)
        sum += (double)a[(long long)row * k + i] * (double)b[(long long)i * n + column];
    sums[(long long)row * n + column] = sum;
    h[(long long)row * n + column] = (float)sum;
}

extern "C" __global__ void normed(const double* sums, const float* gamma, float* y, int m, int n)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m) return;
    const double* from = sums + (long long)row * n;
    double squares = 0.0;
    for (int c = 0; c < n; ++c) squares += from[c] * from[c];
    for (int c = 0; c < n; ++c) y[(long long)row * n + c] = (float)(from[c] / sqrt(squares / n + 1e-5) * gamma[c]);
}
