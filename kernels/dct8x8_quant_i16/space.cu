// A space of integer 8 x 8 DCTs (HEVC) with quantisation.
//
// The parameters are macros, defined above this text for each configuration:
//   BLOCKS   blocks of 8 x 8 that a block of threads makes, side by side
//   WAY      0: eight threads a block; each makes a column, then a row, and they meet in shared memory
//            1: eight threads a block, which turn it between the passes by shuffles: no shared memory, no barrier
//            2: one thread a block, all in registers
//   BUTTERFLY  1: sums and differences first (Chen, Smith and Fralick, 1977), 22 products in eight outputs; 0: all 64
//   VEC      values of one load or store: 1, or 8 (16 bytes; then threads take rows first and columns second)

struct Eight {
    int v[8];
};

// M x, for the matrix M of HEVC's 8-point transform.
__device__ __forceinline__ Eight transformed(const Eight& x) {
    Eight y;
    if constexpr (BUTTERFLY == 1) {
        int even[4], odd[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) even[i] = x.v[i] + x.v[7 - i], odd[i] = x.v[i] - x.v[7 - i];
        const int a = even[0] + even[3], b = even[1] + even[2], c = even[0] - even[3], d = even[1] - even[2];
        y.v[0] = 64 * (a + b);
        y.v[4] = 64 * (a - b);
        y.v[2] = 83 * c + 36 * d;
        y.v[6] = 36 * c - 83 * d;
        y.v[1] = 89 * odd[0] + 75 * odd[1] + 50 * odd[2] + 18 * odd[3];
        y.v[3] = 75 * odd[0] - 18 * odd[1] - 89 * odd[2] - 50 * odd[3];
        y.v[5] = 50 * odd[0] - 89 * odd[1] + 18 * odd[2] + 75 * odd[3];
        y.v[7] = 18 * odd[0] - 50 * odd[1] + 75 * odd[2] - 89 * odd[3];
    } else {
        constexpr int M[8][8] = {
            {64, 64, 64, 64, 64, 64, 64, 64},     {89, 75, 50, 18, -18, -50, -75, -89},
            {83, 36, -36, -83, -83, -36, 36, 83}, {75, -18, -89, -50, 50, 89, 18, -75},
            {64, -64, -64, 64, 64, -64, -64, 64}, {50, -89, 18, 75, -75, -18, 89, -50},
            {36, -83, 83, -36, -36, 83, -83, 36}, {18, -50, 75, -89, 89, -75, 50, -18},
        };
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            y.v[k] = 0;
#pragma unroll
            for (int i = 0; i < 8; ++i) y.v[k] += M[k][i] * x.v[i];
        }
    }
    return y;
}

__device__ __forceinline__ Eight rounded(Eight x, int add, int shift) {
#pragma unroll
    for (int i = 0; i < 8; ++i) x.v[i] = (x.v[i] + add) >> shift;
    return x;
}

__device__ __forceinline__ int level(int coefficient, int scale) {
    const int size = static_cast<int>((abs(coefficient) * static_cast<long long>(scale) + 87381) >> 18);
    return coefficient < 0 ? -size : size;
}

__device__ __forceinline__ Eight load_row(const short* p) {
    Eight x;
    if constexpr (VEC == 8) {
        const int4 q = *reinterpret_cast<const int4*>(p);
        const int words[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) x.v[2 * i] = static_cast<short>(words[i]), x.v[2 * i + 1] = words[i] >> 16;
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) x.v[i] = p[i];
    }
    return x;
}

__device__ __forceinline__ void store_row(short* p, const Eight& x) {
    if constexpr (VEC == 8) {
        int words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] = (x.v[2 * i] & 0xffff) | x.v[2 * i + 1] << 16;
        *reinterpret_cast<int4*>(p) = make_int4(words[0], words[1], words[2], words[3]);
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) p[i] = static_cast<short>(x.v[i]);
    }
}

#if WAY < 2
// Turns the 8 x 8 values of eight neighbouring threads: value i of thread t goes to thread i as value t. `lane` is the
// thread's number among its eight.
__device__ __forceinline__ Eight turned(const Eight& x, int lane) {
    Eight y;
#if WAY == 0
    __shared__ int values[BLOCKS][8][9];
    int(*own)[9] = values[threadIdx.x / 8];
    __syncthreads();  // the last turn may still be read
#pragma unroll
    for (int i = 0; i < 8; ++i) own[lane][i] = x.v[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i) y.v[i] = own[i][lane];
#else
    // In three rounds: halves, quarters and eighths change places with the thread that lies as far away.
    y = x;
#pragma unroll
    for (int apart = 4; apart > 0; apart /= 2) {
        const bool upper = lane & apart;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            if (i & apart) continue;
            const int got = __shfl_xor_sync(0xffffffffu, upper ? y.v[i] : y.v[i + apart], apart, 8);
            if (upper) y.v[i] = got;
            else y.v[i + apart] = got;
        }
    }
#endif
    return y;
}

// A thread loads a row; threads turn the block, so that it holds a column; and again, so that it holds a row.
extern "C" __global__ void __launch_bounds__(8 * BLOCKS)
dct(const short* __restrict__ residual, const int* __restrict__ scales, short* __restrict__ levels, int across) {
    const int lane = threadIdx.x % 8, wanted = blockIdx.x * BLOCKS + threadIdx.x / 8, block = min(wanted, across - 1);
    const long long at = static_cast<long long>(blockIdx.y * 8 + lane) * 8 * across + block * 8;
    const Eight column = rounded(transformed(turned(load_row(residual + at), lane)), 2, 2);
    Eight row = rounded(transformed(turned(column, lane)), 256, 9);
    if (wanted >= across) return;
#pragma unroll
    for (int i = 0; i < 8; ++i) row.v[i] = level(row.v[i], scales[lane * 8 + i]);
    store_row(levels + at, row);
}

#else
extern "C" __global__ void __launch_bounds__(BLOCKS)
dct(const short* __restrict__ residual, const int* __restrict__ scales, short* __restrict__ levels, int across) {
    const int block = blockIdx.x * BLOCKS + threadIdx.x;
    if (block >= across) return;
    const long long at = static_cast<long long>(blockIdx.y) * 64 * across + block * 8;
    Eight rows[8];
#pragma unroll
    for (int r = 0; r < 8; ++r) rows[r] = load_row(residual + at + r * 8 * across);
#pragma unroll
    for (int c = 0; c < 8; ++c) {
        Eight column;
#pragma unroll
        for (int r = 0; r < 8; ++r) column.v[r] = rows[r].v[c];
        column = rounded(transformed(column), 2, 2);
#pragma unroll
        for (int r = 0; r < 8; ++r) rows[r].v[c] = column.v[r];
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        Eight row = rounded(transformed(rows[r]), 256, 9);
#pragma unroll
        for (int i = 0; i < 8; ++i) row.v[i] = level(row.v[i], scales[r * 8 + i]);
        store_row(levels + at + r * 8 * across, row);
    }
}
#endif
