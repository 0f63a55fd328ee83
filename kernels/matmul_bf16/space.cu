// A space of bfloat16 matrix products on tensor cores, c (m x n) = a (m x k) * b (k x n), all row-major.
//
// The parameters are macros, defined above this text for each configuration:
//   BM, BN, BK   tile of c that a block makes, and how deep one step along k goes
//   WM, WN       the part of it that a warp makes
//   STAGES       tiles in shared memory: 1 is loaded, then multiplied; with more, STAGES - 1 steps are on their way by
//                cp.async while one is multiplied
//   LDMATRIX     1: fragments come by ldmatrix, 0: by plain loads of shared memory
//   BAND         blocks take tiles of BAND rows of tiles together, column by column, for the level-2 cache; 1: row by row
//   WGMMA        1: Hopper's own way, at the end of this file, where rows lie on 16 bytes; CLUSTER belongs to it

typedef unsigned short Half;

#if WGMMA == 1  // the parameters are those of Hopper's way; every other shape is left to small plain tiles
constexpr int TILE_M = BM, TILE_N = BN, DEPTH = BK, DEEP = STAGES;
constexpr int MAP_TYPE = 10;  // bf16, as tensor maps number it
#define WGMMA_TYPE "bf16.bf16"
#undef BM
#undef BN
#undef BK
#undef WM
#undef WN
#undef STAGES
#define BM 64
#define BN 64
#define BK 32
#define WM 32
#define WN 32
#define STAGES 1
#endif

constexpr int WARPS_N = BN / WN, THREADS = 32 * (BM / WM) * WARPS_N;
constexpr int PITCH_A = BK + 8, PITCH_B = BN + 8;  // 16 bytes more: eight rows of a fragment lie in all banks
constexpr int A_HALVES = BM * PITCH_A, B_HALVES = BK * PITCH_B;

// d += a * b for a 16 x 16 tile of a and a 16 x 8 tile of b, spread over a warp as PTX has it for m16n8k16.
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two neighbours, rounded.
__device__ __forceinline__ unsigned pack(float low, float high) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
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

#if WGMMA == 1
// Hopper's own way: a warpgroup of producers brings tiles by TMA, two of consumers multiply them from shared memory by
// wgmma. Blocks stay, and take one tile of c after another; CLUSTER blocks below each other share the tiles of b.
//
// No host makes the tensor maps that TMA needs: each block writes its own into scratch and fences them. TMA reads zero
// outside the matrices and writes nothing there, so that only rows on 16 bytes are asked for.

constexpr int GROUP = 128, HOPPER_THREADS = 3 * GROUP;
constexpr int ROWS = TILE_M / 2, HIGH = ROWS / 64;  // of a consumer, and how many wgmma tall that is
constexpr int BOX_HALVES = 64 * 64, BOX_BYTES = 2 * BOX_HALVES;
constexpr int A_BYTES = 2 * TILE_M * DEPTH, B_BYTES = 2 * TILE_N * DEPTH, STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int BOXES = TILE_N / 64, MAP_BYTES = 128;

__device__ __forceinline__ unsigned shared_address(const void* at) {
    return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// ---- tensor maps: rows of `columns` halves, brought in boxes of `high` rows by 64 columns, swizzled by 128 bytes.

#define REPLACE(field, width, constraint, value)                                                     \
    asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." width " [%0], %1;" ::"r"(at), \
                 constraint(value)                                                                   \
                 : "memory")
#define REPLACE_AT(field, ord, width, constraint, value)                                                        \
    asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." width " [%0], " ord ", %1;" ::"r"(at), \
                 constraint(value)                                                                              \
                 : "memory")

// By one whole warp: the map is made in shared memory at `made`, and copied to `map`, where TMA may read it afterwards.
__device__ __forceinline__ void make_map(unsigned* made, unsigned char* map, const Half* x, int rows, int columns,
                                         int high) {
    const unsigned at = shared_address(made);
    made[threadIdx.x % 32] = 0;
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        REPLACE("global_address", "b64", "l", x);
        REPLACE("rank", "b32", "r", 1);
        REPLACE_AT("box_dim", "0", "b32", "r", 64);
        REPLACE_AT("box_dim", "1", "b32", "r", high);
        REPLACE_AT("global_dim", "0", "b32", "r", columns);
        REPLACE_AT("global_dim", "1", "b32", "r", rows);
        REPLACE_AT("global_stride", "0", "b64", "l", 2ll * columns);
        REPLACE_AT("element_stride", "0", "b32", "r", 1);
        REPLACE_AT("element_stride", "1", "b32", "r", 1);
        REPLACE("elemtype", "b32", "n", MAP_TYPE);
        REPLACE("interleave_layout", "b32", "n", 0);
        REPLACE("swizzle_mode", "b32", "n", 3);
        REPLACE("fill_mode", "b32", "n", 0);
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
                 ::"l"(map), "r"(at)
                 : "memory");
}

__device__ __forceinline__ void acquire_map(const unsigned char* map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

// ---- barriers

__device__ __forceinline__ void expect(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void arrive_and_expect_bytes(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive_in_block(unsigned barrier, unsigned block) {
    asm volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there]; }"
        ::"r"(barrier), "r"(block)
        : "memory");
}

__device__ __forceinline__ void wait(unsigned barrier, unsigned parity) {
    unsigned done;
    do {
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    } while (!done);
}

__device__ __forceinline__ unsigned rank_in_cluster() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void meet_cluster() {
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

// ---- copies by TMA

__device__ __forceinline__ void bring(unsigned to, const unsigned char* map, int column, int row, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
        ::"r"(to), "l"(map), "r"(column), "r"(row), "r"(barrier)
        : "memory");
}

// To the same place of each block of the cluster, whose barrier at the same place counts the bytes.
__device__ __forceinline__ void bring_to_all(unsigned to, const unsigned char* map, int column, int row,
                                             unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%2, %3}], [%4], %5;"
        ::"r"(to), "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(static_cast<unsigned short>((1 << CLUSTER) - 1))
        : "memory");
}

__device__ __forceinline__ void send(const unsigned char* map, int column, int row, unsigned from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(map), "r"(column), "r"(row), "r"(from)
                 : "memory");
}

// ---- wgmma

#define TO32(d, i) TO8(d, i), TO8(d, i + 8), TO8(d, i + 16), TO8(d, i + 24)
#define TO8(d, i)                                                                                         \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
        "+f"(d[i + 7])
#define NAMES32                                                                                                   \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES64                                                                                                     \
    NAMES32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, " \
            "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES128                                                                                                       \
    NAMES64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, "    \
            "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, "  \
            "%104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, "    \
            "%121, %122, %123, %124, %125, %126, %127"
// a lies row by row (K-major), b column by column as seen from the product (MN-major: the last 1).
#define WGMMA_OF(n, names, a, b, add)                                                                      \
    "{ .reg .pred p; setp.ne.b32 p, " add ", 0; wgmma.mma_async.sync.aligned.m64n" n "k16.f32." WGMMA_TYPE \
    " {" names "}, " a ", " b ", p, 1, 1, 0, 1; }"

// d = a * b, or d += a * b, for 64 rows of a and TILE_N columns of b, 16 deep; a and b are descriptors.
__device__ __forceinline__ void wgmma(float (&d)[TILE_N / 2], unsigned long long a, unsigned long long b, int add) {
    if constexpr (TILE_N == 256) {
        asm volatile(WGMMA_OF("256", NAMES128, "%128", "%129", "%130")
                     : TO32(d, 0), TO32(d, 32), TO32(d, 64), TO32(d, 96)
                     : "l"(a), "l"(b), "r"(add));
    } else if constexpr (TILE_N == 128) {
        asm volatile(WGMMA_OF("128", NAMES64, "%64", "%65", "%66") : TO32(d, 0), TO32(d, 32) : "l"(a), "l"(b), "r"(add));
    } else {
        asm volatile(WGMMA_OF("64", NAMES32, "%32", "%33", "%34") : TO32(d, 0) : "l"(a), "l"(b), "r"(add));
    }
}

// Where a tile lies: `leading` bytes between 64 columns of b, 1024 between groups of eight rows; swizzled by 128 bytes.
__device__ __forceinline__ unsigned long long descriptor(unsigned at, unsigned leading) {
    return static_cast<unsigned long long>((at & 0x3ffff) >> 4) | static_cast<unsigned long long>(leading >> 4) << 16 |
           static_cast<unsigned long long>(1024 >> 4) << 32 | 1ull << 62;
}

// ---- the kernel's parts

// The tiles of c that a cluster takes in turn: bands of BAND rows of tiles, column by column.
struct Tiles {
    int down, across, at;

    __device__ __forceinline__ Tiles(int m, int n)
        : down((m + CLUSTER * TILE_M - 1) / (CLUSTER * TILE_M)), across((n + TILE_N - 1) / TILE_N),
          at(blockIdx.x / CLUSTER) {}

    __device__ __forceinline__ bool more() const { return at < down * across; }

    __device__ __forceinline__ void next() { at += gridDim.x / CLUSTER; }

    __device__ __forceinline__ void place(int& row, int& column, unsigned rank) const {
        const int band = at / (BAND * across), inside = at % (BAND * across), height = min(BAND, down - band * BAND);
        row = ((band * BAND + inside % height) * CLUSTER + rank) * TILE_M, column = inside / height * TILE_N;
    }
};

// A stage of the ring, and the parity of its barriers' phase.
struct Ring {
    int stage = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void step() {
        if (++stage == DEEP) stage = 0, parity ^= 1;
    }
};

// One thread: tiles of a and b for every step of every tile of c, as stages become free.
__device__ __forceinline__ void produce(unsigned stages, unsigned full, unsigned empty, const unsigned char* maps, int m,
                                        int n, int k, unsigned rank) {
    acquire_map(maps);
    acquire_map(maps + MAP_BYTES);
    Ring ring;
    for (Tiles tiles(m, n); tiles.more(); tiles.next()) {
        int row, column;
        tiles.place(row, column, rank);
        for (int at = 0; at < k; at += DEPTH, ring.step()) {
            const unsigned to = stages + ring.stage * STAGE_BYTES, barrier = full + 8 * ring.stage;
            wait(empty + 8 * ring.stage, ring.parity ^ 1);
            arrive_and_expect_bytes(barrier, STAGE_BYTES);
            bring(to, maps, at, row, barrier);
#pragma unroll
            for (int box = 0; box < BOXES / CLUSTER; ++box) {
                const int own = rank * (BOXES / CLUSTER) + box;
                const unsigned place = to + A_BYTES + own * BOX_BYTES;
                if constexpr (CLUSTER > 1)
                    bring_to_all(place, maps + MAP_BYTES, column + own * 64, at, barrier);
                else
                    bring(place, maps + MAP_BYTES, column + own * 64, at, barrier);
            }
        }
    }
}

// The sums of 64 rows, box by box of 64 columns through two buffers, to c.
__device__ __forceinline__ void write(const float (&d)[TILE_N / 2], unsigned buffers, const unsigned char* map, int row,
                                      int column, int group, int& turn) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x % GROUP / 32;
    const int own_row = warp * 16 + lane % 16, own_column = lane / 16;
#pragma unroll
    for (int box = 0; box < BOXES; ++box) {
        const unsigned buffer = buffers + turn * BOX_BYTES;
        turn ^= 1;
        if (threadIdx.x % GROUP == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");  // the buffer's last box is on its way
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
            const float* of = d + box * 32 + j * 4;
            const unsigned to = buffer + own_row * 128 + ((j + own_column) ^ own_row % 8) * 16;
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                         "r"(pack(of[0], of[1])), "r"(pack(of[2], of[3])), "r"(pack(of[4], of[5])),
                         "r"(pack(of[6], of[7]))
                         : "memory");
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
        if (threadIdx.x % GROUP == 0) {
            send(map, column + box * 64, row, buffer);
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
    }
}

// A warpgroup: ROWS rows of each tile of c.
__device__ __forceinline__ void consume(unsigned stages, unsigned full, unsigned empty, unsigned buffers,
                                        const unsigned char* maps, int m, int n, int k, unsigned rank, int group) {
    if (threadIdx.x % GROUP == 0) acquire_map(maps + 2 * MAP_BYTES);
    __syncwarp();
    Ring ring;
    int turn = 0;
    for (Tiles tiles(m, n); tiles.more(); tiles.next()) {
        int row, column, last = 0;
        tiles.place(row, column, rank);
        float d[HIGH][TILE_N / 2];
        for (int at = 0; at < k; at += DEPTH) {
            const unsigned tile = stages + ring.stage * STAGE_BYTES;
            wait(full + 8 * ring.stage, ring.parity);
            const unsigned long long a = descriptor(tile + group * ROWS * 128, 16);
            const unsigned long long b = descriptor(tile + A_BYTES, BOX_BYTES);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int deep = 0; deep < DEPTH / 16; ++deep)
#pragma unroll
                for (int i = 0; i < HIGH; ++i)
                    wgmma(d[i], a + (i * BOX_BYTES >> 4) + (deep * 32 >> 4), b + (deep * 2048 >> 4), at + deep > 0);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");  // the step before this one is done
            if (at > 0 && threadIdx.x % GROUP < CLUSTER) arrive_in_block(empty + 8 * last, threadIdx.x % GROUP);
            last = ring.stage;
            ring.step();
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (threadIdx.x % GROUP < CLUSTER) arrive_in_block(empty + 8 * last, threadIdx.x % GROUP);
#pragma unroll
        for (int i = 0; i < HIGH; ++i)
            write(d[i], buffers + group * 2 * BOX_BYTES, maps + 2 * MAP_BYTES, row + group * ROWS + i * 64, column, group,
                  turn);
    }
    if (threadIdx.x % GROUP == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(HOPPER_THREADS, 1)
matmul_hopper(const Half* __restrict__ a, const Half* __restrict__ b, Half* __restrict__ c, int m, int n, int k,
              unsigned char* __restrict__ maps) {
    extern __shared__ __align__(1024) unsigned char room[];
    __shared__ __align__(128) unsigned made[3][32];
    __shared__ __align__(8) unsigned long long barriers[2 * DEEP];
    const unsigned stages = (shared_address(room) + 1023) & ~1023u, buffers = stages + DEEP * STAGE_BYTES;
    const unsigned full = shared_address(barriers), empty = full + 8 * DEEP;
    const unsigned rank = CLUSTER > 1 ? rank_in_cluster() : 0;
    maps += blockIdx.x * 3 * MAP_BYTES;
    const int warp = threadIdx.x / 32;  // each map takes a while, so that three warps make them side by side
    if (warp == 0) {
        make_map(made[0], maps, a, m, k, TILE_M);
    } else if (warp == 1) {
        make_map(made[1], maps + MAP_BYTES, b, k, n, DEPTH);
    } else if (warp == 2) {
        make_map(made[2], maps + 2 * MAP_BYTES, c, m, n, 64);
    } else if (threadIdx.x == 96) {
        for (int s = 0; s < DEEP; ++s) expect(full + 8 * s, 1), expect(empty + 8 * s, 2 * CLUSTER);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncwarp();
    if constexpr (CLUSTER > 1)
        meet_cluster();
    else
        __syncthreads();
    const int group = threadIdx.x / GROUP;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) produce(stages, full, empty, maps, m, n, k, rank);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        consume(stages, full, empty, buffers, maps, m, n, k, rank, group - 1);
    }
    __syncwarp();
    if constexpr (CLUSTER > 1) meet_cluster();  // no block leaves while another writes to it
}
#endif
