// A second opinion on the oracle: one thread a row, everything in float64, as plain as can be.

extern "C" __global__ void reference(const float* x, float* y, int rows, int cols)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* from = x + (long long)row * cols;
    double maximum = from[0], sum = 0.0;
    for (int i = 1; i < cols; ++i) maximum = from[i] > maximum ? from[i] : maximum;
    for (int i = 0; i < cols; ++i) sum += exp(from[i] - maximum);
    for (int i = 0; i < cols; ++i) y[(long long)row * cols + i] = (float)(exp(from[i] - maximum) / sum);
}
