// The kernel that runs today: 64 threads for each block of 8 x 8, one coefficient a thread, both products in full.

__constant__ int M[8][8] = {
    {64, 64, 64, 64, 64, 64, 64, 64}, {89, 75, 50, 18, -18, -50, -75, -89}, {83, 36, -36, -83, -83, -36, 36, 83},
    {75, -18, -89, -50, 50, 89, 18, -75}, {64, -64, -64, 64, 64, -64, -64, 64}, {50, -89, 18, 75, -75, -18, 89, -50},
    {36, -83, 83, -36, -36, 83, -83, 36}, {18, -50, 75, -89, 89, -75, 50, -18},
};

extern "C" __global__ void __launch_bounds__(64)
dct(const short* __restrict__ residual, const int* __restrict__ scales, short* __restrict__ levels, int across)
{
    __shared__ int block[8][8], half[8][8];
    const int row = threadIdx.y, column = threadIdx.x, pitch = 8 * across;
    const long long at = (long long)(blockIdx.y * 8 + row) * pitch + blockIdx.x * 8 + column;
    block[row][column] = residual[at];
    __syncthreads();
    int sum = 2;
    for (int i = 0; i < 8; ++i) sum += M[row][i] * block[i][column];
    half[row][column] = sum >> 2;
    __syncthreads();
    sum = 256;
    for (int i = 0; i < 8; ++i) sum += M[column][i] * half[row][i];
    const int coefficient = sum >> 9;
    const int level = (int)((abs(coefficient) * (long long)scales[row * 8 + column] + 87381) >> 18);
    levels[at] = coefficient < 0 ? -level : level;
}
