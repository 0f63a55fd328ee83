// A second opinion on the oracle: one thread an element of c, whose row of the diagonal matrix has but one entry.

extern "C" __global__ void reference(const float* d, const float* b, float* c, int m, int n)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) return;
    c[(long long)row * n + column] = (float)((double)d[row] * (double)b[(long long)row * n + column]);
}
