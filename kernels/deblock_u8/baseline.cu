// The kernels that run today: a thread a pixel, first across vertical borders, then across horizontal ones.

// The two pixels at a border, p0 and q0, as the filter leaves them.
__device__ __forceinline__ void filter(int p1, int& p0, int& q0, int q1, int alpha, int beta, int tc)
{
    if (abs(p0 - q0) >= alpha || abs(p1 - p0) >= beta || abs(q1 - q0) >= beta) return;
    const int delta = min(max(((q0 - p0) * 4 + (p1 - q1) + 4) >> 3, -tc), tc);
    p0 = min(max(p0 + delta, 0), 255);
    q0 = min(max(q0 - delta, 0), 255);
}

// The pixel at `at` after filtering along a line of pixels that lie `step` apart; `i` of `length` is its place there.
__device__ __forceinline__ unsigned char pixel(const unsigned char* from, long long at, long long step, int i, int length,
                                               int alpha, int beta, int tc)
{
    const bool right = i % 8 == 0 && i > 0, left = i % 8 == 7 && i + 1 < length;
    if (!right && !left) return from[at];
    const long long q = right ? at : at + step;
    int p0 = from[q - step], q0 = from[q];
    filter(from[q - 2 * step], p0, q0, from[q + step], alpha, beta, tc);
    return right ? q0 : p0;
}

extern "C" __global__ void __launch_bounds__(256)
vertical(const unsigned char* __restrict__ picture, unsigned char* __restrict__ half, int down, int across, int alpha,
         int beta, int tc)
{
    const int column = blockIdx.x * 256 + threadIdx.x, width = 8 * across;
    if (column >= width) return;
    const long long at = (long long)blockIdx.y * width + column;
    half[at] = pixel(picture, at, 1, column, width, alpha, beta, tc);
}

extern "C" __global__ void __launch_bounds__(256)
horizontal(const unsigned char* __restrict__ half, unsigned char* __restrict__ smooth, int down, int across, int alpha,
           int beta, int tc)
{
    const int column = blockIdx.x * 256 + threadIdx.x, width = 8 * across;
    if (column >= width) return;
    const long long at = (long long)blockIdx.y * width + column;
    smooth[at] = pixel(half, at, width, blockIdx.y, 8 * down, alpha, beta, tc);
}
