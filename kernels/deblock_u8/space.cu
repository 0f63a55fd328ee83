// A space of deblocking filters on a grid of 8 x 8 pixels.
//
// The parameters are macros, defined above this text for each configuration:
//   THREADS  of a block
//   WAY      0: two launches; the first copies and does vertical borders, a run of 8 pixels a thread, the second does
//               horizontal ones in place
//            1: one launch, tiles in shared memory
//            2: one launch, a thread holds 8 x 8 pixels in registers
//   TX, TY   with WAY 1: cells of a tile
//   WORD     bytes of one access: 4 or 1
//
// A *cell* is the square of 8 x 8 pixels around a crossing of borders: it begins 4 pixels before them. No filter reaches
// over a cell's edge, so a cell needs nothing of its neighbours, and both directions can be done in one go.

// The two pixels at a border, p0 and q0, as the filter leaves them.
__device__ __forceinline__ void filter(int p1, int& p0, int& q0, int q1, int alpha, int beta, int tc)
{
    if (abs(p0 - q0) >= alpha || abs(p1 - p0) >= beta || abs(q1 - q0) >= beta) return;
    const int delta = min(max(((q0 - p0) * 4 + (p1 - q1) + 4) >> 3, -tc), tc);
    p0 = min(max(p0 + delta, 0), 255);
    q0 = min(max(q0 - delta, 0), 255);
}

__device__ __forceinline__ void get4(const unsigned char* from, int (&v)[8], int first) {
    if constexpr (WORD == 4) {
        const unsigned word = *reinterpret_cast<const unsigned*>(from);
#pragma unroll
        for (int i = 0; i < 4; ++i) v[first + i] = word >> 8 * i & 255;
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) v[first + i] = from[i];
    }
}

__device__ __forceinline__ void put4(unsigned char* to, const int (&v)[8], int first) {
    if constexpr (WORD == 4) {
        *reinterpret_cast<unsigned*>(to) =
            v[first] | v[first + 1] << 8 | v[first + 2] << 16 | static_cast<unsigned>(v[first + 3]) << 24;
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) to[i] = static_cast<unsigned char>(v[first + i]);
    }
}

// Eight pixels of a row from `column` on, a multiple of 4 from -4; what lies outside of the picture is left alone.
__device__ __forceinline__ void get8(const unsigned char* row, int (&v)[8], int column, int width) {
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = 0;
    if (column >= 0) get4(row + column, v, 0);
    if (column + 4 < width) get4(row + column + 4, v, 4);
}

__device__ __forceinline__ void put8(unsigned char* row, const int (&v)[8], int column, int width) {
    if (column >= 0) put4(row + column, v, 0);
    if (column + 4 < width) put4(row + column + 4, v, 4);
}

__device__ __forceinline__ bool is_border(int at, int length) {
    return at > 0 && at < length;
}

#define PARAMETERS                                                                                                  \
    const unsigned char *__restrict__ picture, unsigned char *smooth, int down, int across, int alpha, int beta, int tc

#if WAY == 0
extern "C" __global__ void __launch_bounds__(THREADS) vertical(PARAMETERS) {
    const int cell = blockIdx.x * THREADS + threadIdx.x, width = 8 * across;
    if (cell > across) return;
    const long long start = static_cast<long long>(blockIdx.y) * width;
    int v[8];
    get8(picture + start, v, cell * 8 - 4, width);
    if (is_border(cell * 8, width)) filter(v[2], v[3], v[4], v[5], alpha, beta, tc);
    put8(smooth + start, v, cell * 8 - 4, width);
}

extern "C" __global__ void __launch_bounds__(THREADS) horizontal(PARAMETERS) {
    const int column = blockIdx.x * THREADS + threadIdx.x, width = 8 * across;
    if (column >= width) return;
    unsigned char* q = smooth + static_cast<long long>(blockIdx.y + 1) * 8 * width + column;
    int p0 = q[-width], q0 = q[0];
    filter(q[-2 * width], p0, q0, q[width], alpha, beta, tc);
    q[-width] = p0, q[0] = q0;
}

#elif WAY == 1
extern "C" __global__ void __launch_bounds__(THREADS) deblock(PARAMETERS) {
    constexpr int PITCH = 8 * TX + 4;
    __shared__ __align__(4) unsigned char tile[8 * TY * PITCH];
    const int width = 8 * across, height = 8 * down;
    const int row0 = blockIdx.y * TY * 8 - 4, column0 = blockIdx.x * TX * 8 - 4;
    for (int i = threadIdx.x; i < 8 * TY * TX; i += THREADS) {
        const int y = i / TX, x = i % TX * 8, row = row0 + y, column = column0 + x;
        int v[8] = {};
        if (row >= 0 && row < height && column < width) {
            get8(picture + static_cast<long long>(row) * width, v, column, width);
            if (is_border(column + 4, width)) filter(v[2], v[3], v[4], v[5], alpha, beta, tc);
        }
        put4(tile + y * PITCH + x, v, 0);
        put4(tile + y * PITCH + x + 4, v, 4);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TY * 8 * TX; i += THREADS) {
        const int y = i / (8 * TX) * 8 + 4, x = i % (8 * TX);
        if (!is_border(row0 + y, height)) continue;
        unsigned char* q = tile + y * PITCH + x;
        int p0 = q[-PITCH], q0 = q[0];
        filter(q[-2 * PITCH], p0, q0, q[PITCH], alpha, beta, tc);
        q[-PITCH] = p0, q[0] = q0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 8 * TY * TX; i += THREADS) {
        const int y = i / TX, x = i % TX * 8, row = row0 + y, column = column0 + x;
        if (row < 0 || row >= height || column >= width) continue;
        int v[8];
        get4(tile + y * PITCH + x, v, 0);
        get4(tile + y * PITCH + x + 4, v, 4);
        put8(smooth + static_cast<long long>(row) * width, v, column, width);
    }
}

#else
extern "C" __global__ void __launch_bounds__(THREADS) deblock(PARAMETERS) {
    const int cell = blockIdx.x * THREADS + threadIdx.x, width = 8 * across, height = 8 * down;
    if (cell > across) return;
    const int row0 = blockIdx.y * 8 - 4;
    int v[8][8];
#pragma unroll
    for (int y = 0; y < 8; ++y) {
        const int row = min(max(row0 + y, 0), height - 1);  // rows outside of the picture are read and not stored
        get8(picture + static_cast<long long>(row) * width, v[y], cell * 8 - 4, width);
        if (is_border(cell * 8, width)) filter(v[y][2], v[y][3], v[y][4], v[y][5], alpha, beta, tc);
    }
    if (is_border(row0 + 4, height)) {
#pragma unroll
        for (int x = 0; x < 8; ++x) filter(v[2][x], v[3][x], v[4][x], v[5][x], alpha, beta, tc);
    }
#pragma unroll
    for (int y = 0; y < 8; ++y)
        if (row0 + y >= 0 && row0 + y < height)
            put8(smooth + static_cast<long long>(row0 + y) * width, v[y], cell * 8 - 4, width);
}
#endif
