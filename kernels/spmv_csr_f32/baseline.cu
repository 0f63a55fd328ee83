// The kernel that runs today: a warp for each row.

extern "C" __global__ void __launch_bounds__(256)
spmv(const int* __restrict__ offsets, const int* __restrict__ columns, const float* __restrict__ values,
     const float* __restrict__ x, float* __restrict__ y, int rows)
{
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int e = offsets[row] + lane; e < offsets[row + 1]; e += 32) sum += values[e] * x[columns[e]];
    for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffffu, sum, apart);
    if (lane == 0) y[row] = sum;
}
