// A second opinion on the oracle: one thread a row, everything in float64, as plain as can be. The maximum is taken out
// of the logarithm, so that no exponential overflows: log sum exp(x) = m + log sum exp(x - m).

extern "C" __global__ void reference(const float* logits, const int* labels, float* loss, int rows, int classes)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* from = logits + (long long)row * classes;
    double maximum = from[0], sum = 0.0;
    for (int c = 1; c < classes; ++c) maximum = from[c] > maximum ? from[c] : maximum;
    for (int c = 0; c < classes; ++c) sum += exp(from[c] - maximum);
    loss[row] = (float)(maximum + log(sum) - from[labels[row]]);
}
