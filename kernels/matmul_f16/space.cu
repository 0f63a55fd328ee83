// A space of float16 matrix products on tensor cores, c (m x n) = a (m x k) * b (k x n), all row-major.
//
// The parameters are macros, defined above this text for each configuration:
//   BM, BN, BK   tile of c that a block makes, and how deep one step along k goes
//   WM, WN       the part of it that a warp makes
//   STAGES       tiles in shared memory: 1 is loaded, then multiplied; with more, STAGES - 1 steps are on their way by
//                cp.async while one is multiplied
//   LDMATRIX     1: fragments come by ldmatrix, 0: by plain loads of shared memory
//   BAND         blocks take tiles of BAND rows of tiles together, column by column, for the level-2 cache; 1: row by row

typedef unsigned short Half;

constexpr int WARPS_N = BN / WN, THREADS = 32 * (BM / WM) * WARPS_N;
constexpr int PITCH_A = BK + 8, PITCH_B = BN + 8;  // 16 bytes more: eight rows of a fragment lie in all banks
constexpr int A_HALVES = BM * PITCH_A, B_HALVES = BK * PITCH_B;

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

// Four 8 x 8 matrices of 16-bit values, as they lie or turned; a lane gives the address of one row.
__device__ __forceinline__ void ldmatrix(unsigned (&to)[4], const Half* row) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

__device__ __forceinline__ void ldmatrix_turned(unsigned (&first)[2], unsigned (&second)[2], const Half* row) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(first[0]), "=r"(first[1]), "=r"(second[0]), "=r"(second[1])
                 : "r"(at)
                 : "memory");
}

// Eight neighbours of a row into shared memory, zero outside. VECTOR: they lie inside or outside as a whole, on 16 bytes.
template <bool VECTOR>
__device__ __forceinline__ void copy8(Half* to, const Half* x, int row, int column, int rows, int columns) {
    const bool inside = row < rows && column < columns;
    const Half* from = x + (inside ? static_cast<long long>(row) * columns + column : 0);
    if constexpr (VECTOR && STAGES > 1) {
        const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(inside ? 16 : 0) : "memory");
    } else if constexpr (VECTOR) {
        *reinterpret_cast<uint4*>(to) = inside ? *reinterpret_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
    } else {
#pragma unroll
        for (int e = 0; e < 8; ++e) to[e] = inside && column + e < columns ? from[e] : 0;
    }
}

template <bool VECTOR>
__device__ __forceinline__ void load(Half* As, Half* Bs, const Half* a, const Half* b, int row0, int column0, int k0,
                                     int m, int n, int k) {
    for (int v = threadIdx.x; v < BM * BK / 8; v += THREADS)
        copy8<VECTOR>(As + v / (BK / 8) * PITCH_A + v % (BK / 8) * 8, a, row0 + v / (BK / 8), k0 + v % (BK / 8) * 8, m, k);
    for (int v = threadIdx.x; v < BK * BN / 8; v += THREADS)
        copy8<VECTOR>(Bs + v / (BN / 8) * PITCH_B + v % (BN / 8) * 8, b, k0 + v / (BN / 8), column0 + v % (BN / 8) * 8, k,
                      n);
}

struct Sums {
    float d[WM / 16][WN / 8][4];
    int row, column;  // of the warp's part

    __device__ __forceinline__ Sums() {
        row = threadIdx.x / 32 / WARPS_N * WM, column = threadIdx.x / 32 % WARPS_N * WN;
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
#pragma unroll
            for (int j = 0; j < WN / 8; ++j) d[i][j][0] = d[i][j][1] = d[i][j][2] = d[i][j][3] = 0.f;
    }

    __device__ __forceinline__ void step(const Half* As, const Half* Bs) {
        const int lane = threadIdx.x % 32, group = lane / 4, inner = lane % 4 * 2;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned a[WM / 16][4], b[WN / 8][2];
#pragma unroll
            for (int i = 0; i < WM / 16; ++i) {
                const Half* from = As + (row + i * 16) * PITCH_A + k;
                if constexpr (LDMATRIX == 1) {
                    ldmatrix(a[i], from + lane % 16 * PITCH_A + lane / 16 * 8);
                } else {
#pragma unroll
                    for (int r = 0; r < 4; ++r)
                        a[i][r] = *reinterpret_cast<const unsigned*>(from + (group + r % 2 * 8) * PITCH_A + inner + r / 2 * 8);
                }
            }
#pragma unroll
            for (int j = 0; j < WN / 8; j += 2) {
                const Half* from = Bs + k * PITCH_B + column + j * 8;
                if constexpr (LDMATRIX == 1) {
                    ldmatrix_turned(b[j], b[j + 1], from + lane % 16 * PITCH_B + lane / 16 * 8);
                } else {
#pragma unroll
                    for (int r = 0; r < 4; ++r) {
                        const Half* two = from + (inner + r % 2 * 8) * PITCH_B + r / 2 * 8 + group;
                        b[j + r / 2][r % 2] = two[0] | static_cast<unsigned>(two[PITCH_B]) << 16;
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                for (int j = 0; j < WN / 8; ++j) multiply(d[i][j], a[i], b[j]);
        }
    }

    template <bool VECTOR>
    __device__ __forceinline__ void store(Half* c, int row0, int column0, int m, int n) const {
        const int group = threadIdx.x % 32 / 4, inner = threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
#pragma unroll
            for (int j = 0; j < WN / 8; ++j)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int at_row = row0 + row + i * 16 + h * 8 + group, at_column = column0 + column + j * 8 + inner;
                    if (at_row >= m || at_column >= n) continue;
                    const unsigned both = pack(d[i][j][2 * h], d[i][j][2 * h + 1]);
                    Half* to = c + static_cast<long long>(at_row) * n + at_column;
                    if constexpr (VECTOR) {
                        *reinterpret_cast<unsigned*>(to) = both;
                    } else {
                        to[0] = both & 0xffff;
                        if (at_column + 1 < n) to[1] = both >> 16;
                    }
                }
    }
};

template <bool VECTOR>
__device__ __forceinline__ void product(const Half* __restrict__ a, const Half* __restrict__ b, Half* __restrict__ c,
                                        int m, int n, int k) {
    extern __shared__ __align__(16) Half tiles[];  // more than 48 KiB have to be asked for by the launch
    Half *As = tiles, *Bs = tiles + STAGES * A_HALVES;
    const int across = (n + BN - 1) / BN, down = (m + BM - 1) / BM, steps = (k + BK - 1) / BK;
    const int band = blockIdx.x / (BAND * across), inside = blockIdx.x % (BAND * across);
    const int height = min(BAND, down - band * BAND);  // the last band may be lower
    const int row0 = (band * BAND + inside % height) * BM, column0 = inside / height * BN;
    Sums sums;
    if constexpr (STAGES == 1) {
        for (int s = 0; s < steps; ++s) {
            if (s > 0) __syncthreads();
            load<VECTOR>(As, Bs, a, b, row0, column0, s * BK, m, n, k);
            __syncthreads();
            sums.step(As, Bs);
        }
    } else {
#pragma unroll
        for (int s = 0; s < STAGES - 1; ++s) {
            if (s < steps)
                load<VECTOR>(As + s * A_HALVES, Bs + s * B_HALVES, a, b, row0, column0, s * BK, m, n, k);
            asm volatile("cp.async.commit_group;" ::: "memory");
        }
        for (int s = 0; s < steps; ++s) {
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
            __syncthreads();  // step s is there for all, and nobody reads the tile that is loaded next
            const int next = s + STAGES - 1, to = next % STAGES;
            if (next < steps)
                load<VECTOR>(As + to * A_HALVES, Bs + to * B_HALVES, a, b, row0, column0, next * BK, m, n, k);
            asm volatile("cp.async.commit_group;" ::: "memory");
            sums.step(As + s % STAGES * A_HALVES, Bs + s % STAGES * B_HALVES);
        }
    }
    sums.store<VECTOR>(c, row0, column0, m, n);
}

// For rows that lie on 16 bytes.
extern "C" __global__ void __launch_bounds__(THREADS)
matmul_vectors(const Half* __restrict__ a, const Half* __restrict__ b, Half* __restrict__ c, int m, int n, int k) {
    product<true>(a, b, c, m, n, k);
}

// For every other shape.
extern "C" __global__ void __launch_bounds__(THREADS)
matmul_any(const Half* __restrict__ a, const Half* __restrict__ b, Half* __restrict__ c, int m, int n, int k) {
    product<false>(a, b, c, m, n, k);
}
