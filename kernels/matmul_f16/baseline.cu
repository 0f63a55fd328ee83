// The kernel that runs today: a float16 product on tensor cores, as plain as they allow.
//
// A block of four warps makes a 64 x 64 tile in steps of 32 along k; a warp holds 32 x 32 sums. What lies beyond the
// matrices is read as zero and never written, so every shape is right.

constexpr int TILE = 64, DEPTH = 32, THREADS = 128, PITCH_A = DEPTH + 8, PITCH_B = TILE + 8;
typedef unsigned short Half;

// d += a * b for a 16 x 16 tile of a and a 16 x 8 tile of b, spread over a warp as PTX has it for m16n8k16.
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two neighbours, rounded.
__device__ __forceinline__ unsigned pack(float low, float high) {
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

extern "C" __global__ void __launch_bounds__(THREADS)
matmul(const Half* __restrict__ a, const Half* __restrict__ b, Half* __restrict__ c, int m, int n, int k)
{
    __shared__ Half tile_a[TILE * PITCH_A], tile_b[DEPTH * PITCH_B];
    const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, inner = threadIdx.x % 4 * 2;
    const int own_row = warp / 2 * 32, own_column = warp % 2 * 32;
    float sums[2][4][4] = {};

    for (int depth = 0; depth < k; depth += DEPTH) {
        for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
            const int row = i / DEPTH, d = i % DEPTH;
            tile_a[row * PITCH_A + d] = row0 + row < m && depth + d < k ? a[(long long)(row0 + row) * k + depth + d] : 0;
        }
        for (int i = threadIdx.x; i < DEPTH * TILE; i += THREADS) {
            const int d = i / TILE, column = i % TILE;
            tile_b[d * PITCH_B + column] =
                depth + d < k && column0 + column < n ? b[(long long)(depth + d) * n + column0 + column] : 0;
        }
        __syncthreads();
#pragma unroll 1
        for (int d = 0; d < DEPTH; d += 16) {
            unsigned left[2][4], right[4][2];
            for (int i = 0; i < 2; ++i)
                for (int r = 0; r < 4; ++r) {
                    const int row = own_row + i * 16 + group + r % 2 * 8, at = d + inner + r / 2 * 8;
                    left[i][r] = *reinterpret_cast<const unsigned*>(tile_a + row * PITCH_A + at);
                }
            for (int j = 0; j < 4; ++j)
                for (int r = 0; r < 2; ++r) {
                    const Half* from = tile_b + (d + inner + r * 8) * PITCH_B + own_column + j * 8 + group;
                    right[j][r] = from[0] | (unsigned)from[PITCH_B] << 16;
                }
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 4; ++j) multiply(sums[i][j], left[i], right[j]);
        }
        __syncthreads();
    }

    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int h = 0; h < 2; ++h) {
                const int row = row0 + own_row + i * 16 + h * 8 + group, column = column0 + own_column + j * 8 + inner;
                const unsigned both = pack(sums[i][j][2 * h], sums[i][j][2 * h + 1]);
                if (row < m && column < n) c[(long long)row * n + column] = both & 0xffff;
                if (row < m && column + 1 < n) c[(long long)row * n + column + 1] = both >> 16;
            }
}
