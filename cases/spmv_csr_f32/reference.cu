// A second opinion on the oracle: one thread a row, its sum in float64, as plain as can be.

extern "C" __global__ void reference(
    const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double sum = 0.0;
    for (int e = offsets[row]; e < offsets[row + 1]; ++e) sum += (double)values[e] * (double)x[columns[e]];
    y[row] = (float)sum;
}
