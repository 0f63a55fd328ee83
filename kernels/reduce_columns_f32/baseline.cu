// The kernel that runs today: 32 columns and 8 rows of threads a block, which walks down all rows; then the 8 partial
// sums of a column meet in shared memory.

constexpr int COLUMNS = 32, HEIGHT = 8;

extern "C" __global__ void __launch_bounds__(COLUMNS * HEIGHT)
reduce_columns(const float* __restrict__ x, float* __restrict__ y, int rows, int cols)
{
    __shared__ float shared[HEIGHT][COLUMNS];
    const int column = blockIdx.x * COLUMNS + threadIdx.x;
    float sum = 0.0f;
    if (column < cols)
        for (int row = threadIdx.y; row < rows; row += HEIGHT) sum += x[(long long)row * cols + column];
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || column >= cols) return;
    for (int i = 1; i < HEIGHT; ++i) sum += shared[i][threadIdx.x];
    y[column] = sum;
}
