// The kernel that runs today: a thread for each of the 289 places, block and window in shared memory.

constexpr int PLACES = 289;

extern "C" __global__ void __launch_bounds__(PLACES)
search(const unsigned char* __restrict__ picture, const unsigned char* __restrict__ reference, int* __restrict__ best,
       int* __restrict__ place, int across)
{
    __shared__ unsigned char block[16][16], window[32][32];
    __shared__ unsigned least;   // SAD and place in one number, so that the lowest place wins among equals
    const int row = blockIdx.y * 16, column = blockIdx.x * 16, pitch = 16 * across;
    for (int i = threadIdx.x; i < 256; i += PLACES)
        block[i / 16][i % 16] = picture[(long long)(row + i / 16) * pitch + column + i % 16];
    for (int i = threadIdx.x; i < 1024; i += PLACES)
        window[i / 32][i % 32] = reference[(long long)(row + i / 32) * (pitch + 16) + column + i % 32];
    if (threadIdx.x == 0) least = 0xffffffffu;
    __syncthreads();
    const int dy = threadIdx.x / 17, dx = threadIdx.x % 17;
    unsigned sum = 0;
    for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 16; ++j) sum += abs(block[i][j] - window[dy + i][dx + j]);
    atomicMin(&least, sum << 9 | threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0) {
        best[blockIdx.y * across + blockIdx.x] = least >> 9;
        place[blockIdx.y * across + blockIdx.x] = least & 511;
    }
}
