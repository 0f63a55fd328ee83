// The kernel that runs today: 32 x 32 tiles through shared memory, so that reads and writes are both coalesced.

constexpr int TILE = 32, HEIGHT = 8;

extern "C" __global__ void __launch_bounds__(TILE * HEIGHT)
transpose(const float* __restrict__ x, float* __restrict__ y, int rows, int cols)
{
    __shared__ float tile[TILE][TILE + 1];   // padded: a column lies in 32 banks
    const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    for (int i = threadIdx.y; i < TILE; i += HEIGHT)
        if (row0 + i < rows && column0 + threadIdx.x < cols)
            tile[i][threadIdx.x] = x[(long long)(row0 + i) * cols + column0 + threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.y; i < TILE; i += HEIGHT)
        if (column0 + i < cols && row0 + threadIdx.x < rows)
            y[(long long)(column0 + i) * rows + row0 + threadIdx.x] = tile[threadIdx.x][i];
}
