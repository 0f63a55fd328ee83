// A space of convolutions with 3 x 3 filters, stride 1, padding 1, channels first, by way of products of matrices.
//
// The parameters are macros, defined above this text for each configuration:
//   WINOGRAD     1: Winograd's F(2 x 2, 3 x 3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016) as
//                16 products of matrices, one a place of a turned patch: 16 multiply-adds for four pixels in place of 36.
//                Filters are turned by a launch of their own
//                0: filters times patches that are never laid out, as one product, in the manner of matmul_f32
//   BM, BN       output channels of a block, and its tiles of four pixels (WINOGRAD) or its pixels
//   OUT, PX      output channels of a thread, and its tiles or pixels
//   DEPTH        input channels of one step, or places along filters and patches (nine an input channel)
//   SLICES       without WINOGRAD: groups of threads of one block that share a step
//
// Sums are taken in a fixed order, so that results are the same bits in every run.

__device__ __forceinline__ void unpack(float* to, float4 v) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }

#if WINOGRAD

// U = G g G^T of a 3 x 3 filter g, with G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1].
__device__ __forceinline__ void turn_filter(const float (&g)[9], float* u) {
    float half[4][3];
#pragma unroll
    for (int c = 0; c < 3; ++c) {
        half[0][c] = g[c];
        half[1][c] = 0.5f * (g[c] + g[3 + c] + g[6 + c]);
        half[2][c] = 0.5f * (g[c] - g[3 + c] + g[6 + c]);
        half[3][c] = g[6 + c];
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        u[r * 4] = half[r][0];
        u[r * 4 + 1] = 0.5f * (half[r][0] + half[r][1] + half[r][2]);
        u[r * 4 + 2] = 0.5f * (half[r][0] - half[r][1] + half[r][2]);
        u[r * 4 + 3] = half[r][2];
    }
}

// V = B^T d B of a 4 x 4 patch d, in place, with B^T = [1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1].
__device__ __forceinline__ void turn_patch(float (&d)[4][4]) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        const float a = d[0][c] - d[2][c], b = d[1][c] + d[2][c], e = d[2][c] - d[1][c], f = d[1][c] - d[3][c];
        d[0][c] = a, d[1][c] = b, d[2][c] = e, d[3][c] = f;
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const float a = d[r][0] - d[r][2], b = d[r][1] + d[r][2], e = d[r][2] - d[r][1], f = d[r][1] - d[r][3];
        d[r][0] = a, d[r][1] = b, d[r][2] = e, d[r][3] = f;
    }
}

constexpr int GROUP = 256, LANES_M = BM / OUT, LANES_N = BN / PX;  // eight warps of two places each
// Rows of turned patches of 16 tiles are padded, so that two depths that one warp writes lie in different banks.
constexpr int U_FLOATS = DEPTH * 16 * BM, V_DEPTH = 16 * BN + (BN < 32 ? 16 : 0), BUFFER = U_FLOATS + DEPTH * V_DEPTH;
constexpr int PATCHES = (DEPTH * BN + GROUP - 1) / GROUP;
constexpr int ROWS = 4 * LANES_M, ROW = BN + 4;  // of sums that change hands together

__device__ __forceinline__ void copy4(float* to, const float* from) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}

// What a thread brings of one step's patches: the same tile at each depth.
struct Patches {
    const float* x;
    long long plane;
    int width, inputs, depth, inside;  // bits of the patch's places that lie in the image
    float v[PATCHES][4][4];

    __device__ __forceinline__ Patches(const float* of_x, int in, int height, int wide, int tile)
        : x(of_x), plane(static_cast<long long>(height) * wide), width(wide), inputs(in), depth(threadIdx.x / BN), inside(0) {
        const int across = (wide + 1) / 2, row = tile / across * 2 - 1, column = tile % across * 2 - 1;
#pragma unroll
        for (int t = 0; t < 16; ++t) {
            const int r = row + t / 4, c = column + t % 4;
            inside |= static_cast<int>(r >= 0 && r < height && c >= 0 && c < wide) << t;
        }
        x += static_cast<long long>(row) * wide + column;
    }

    __device__ __forceinline__ void load(int in0) {
#pragma unroll
        for (int i = 0; i < PATCHES; ++i) {
            const int channel = in0 + depth + i * (GROUP / BN);
            const float* from = x + channel * plane;
            const int there = channel < inputs && depth + i * (GROUP / BN) < DEPTH ? inside : 0;
#pragma unroll
            for (int t = 0; t < 16; ++t) v[i][t / 4][t % 4] = there >> t & 1 ? from[t / 4 * width + t % 4] : 0.f;
        }
    }

    // Neighbours change places, so that a sum and its factor lie in different banks of the register file.
    __device__ __forceinline__ void store(float* turned) {
#pragma unroll
        for (int i = 0; i < PATCHES; ++i) {
            const int d = depth + i * (GROUP / BN);
            if (DEPTH * BN % GROUP != 0 && d >= DEPTH) return;
            turn_patch(v[i]);
            float* to = turned + d * V_DEPTH + (threadIdx.x % BN ^ 1);
#pragma unroll
            for (int t = 0; t < 16; ++t) to[t * BN] = v[i][t / 4][t % 4];
        }
    }
};

// What a thread multiplies at one depth and place.
struct Fragment {
    float a[OUT], b[PX];

    __device__ __forceinline__ void read(const float* us, const float* vs) {
#pragma unroll
        for (int i = 0; i < OUT; i += 4) unpack(a + i, *reinterpret_cast<const float4*>(us + i * LANES_M));
#pragma unroll
        for (int j = 0; j < PX; j += 4) unpack(b + j, *reinterpret_cast<const float4*>(vs + j * LANES_N));
    }
};

// Row by row, there and back, odd rows first: workflow/adr/0051-large-products.md says why.
__device__ __forceinline__ void multiply(float (&c)[OUT][PX], const Fragment& f) {
#pragma unroll
    for (int r = 0; r < OUT; ++r)
#pragma unroll
        for (int t = 0; t < PX; ++t) {
            const int i = r ^ 1, j = r % 2 ? PX - 1 - t : t;
            c[i][j] += f.a[i] * f.b[j ^ 1];
        }
}

// One step: `us` and `vs` are this thread's first values of the warp's first place. Where there is MORE, the patches that are on
// their way are left in the other buffer, `away` from this one, before the last two products; and behind the barrier the next step's first values
// are read before the last ones of this are multiplied.
template <bool MORE>
__device__ __forceinline__ void multiply_step(float (&c)[2][OUT][PX], Fragment (&f)[2], Patches& patches, const float* us,
                                              const float* vs, float* next, int away) {
#pragma unroll
    for (int at = 0; at < 2 * DEPTH; ++at) {
        const int d = (at + 1) / 2, p = (at + 1) % 2;
        if (MORE && at == 2 * DEPTH - 2 && patches.width > 0) patches.store(next + U_FLOATS);  // always: but not before it is loaded
        if (at + 1 < 2 * DEPTH) {
            f[p].read(us + (d * 16 + p) * BM, vs + d * V_DEPTH + p * BN);
        } else if (MORE) {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
            __syncthreads();
            f[0].read(us + away, vs + away);
        }
        multiply(c[at % 2], f[at % 2]);
    }
}

// The four pixels of a tile, A^T M A with A^T = [1 1 1 0; 0 1 -1 -1]; M's places lie `apart`.
__device__ __forceinline__ void turn_back(float (&pixels)[2][2], const float* places, int apart) {
    float half[2][4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        const float one = places[(4 + c) * apart], two = places[(8 + c) * apart];
        half[0][c] = places[c * apart] + one + two;
        half[1][c] = one - two - places[(12 + c) * apart];
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        pixels[r][0] = half[r][0] + half[r][1] + half[r][2];
        pixels[r][1] = half[r][1] - half[r][2] - half[r][3];
    }
}

__device__ __forceinline__ void store_tile(float* y, const float (&pixels)[2][2], int row, int column, int height, int width) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        if (row + r >= height) return;
        float* to = y + static_cast<long long>(row + r) * width + column;
        if (width % 2 == 0) {
            *reinterpret_cast<float2*>(to) = make_float2(pixels[r][0], pixels[r][1]);
        } else {
            to[0] = pixels[r][0];
            if (column + 1 < width) to[1] = pixels[r][1];
        }
    }
}

// All filters, turned: by the BM output channels of a block, input channel, place and output channel, so that what a block
// brings lies together; zero beyond the last of each.
extern "C" __global__ void __launch_bounds__(128)
turn_filters(const float* __restrict__ w, float* __restrict__ turned, int inputs, int outputs) {
    const int out = blockIdx.x * 32 + threadIdx.x % 32, in = blockIdx.y * 4 + threadIdx.x / 32;
    const bool there = out < outputs && in < inputs;
    const float* from = w + (there ? (static_cast<long long>(out) * inputs + in) * 9 : 0);
    float g[9], u[16];
#pragma unroll
    for (int t = 0; t < 9; ++t) g[t] = there ? from[t] : 0.f;
    turn_filter(g, u);
#pragma unroll
    for (int t = 0; t < 16; ++t) turned[((out / BM * 4 * gridDim.y + in) * 16 + t) * BM + out % BM] = u[t];
}

extern "C" __global__ void __launch_bounds__(GROUP, OUT * PX > 32 ? 1 : 2)
conv3x3(const float* __restrict__ x, const float* __restrict__ turned, float* __restrict__ y, int inputs, int outputs,
        int height, int width) {
    extern __shared__ __align__(16) float shared[];
    const int out0 = blockIdx.x * BM, tile0 = blockIdx.y * BN;
    const int lane = threadIdx.x % 32, place = threadIdx.x / 32 * 2;
    // Neighbours read the same patches, and next but one neighbours the same filters: half as many passes of shared memory.
    const int row = (lane / (2 * LANES_N) * 2 + lane % 2) * 4, column = lane / 2 % LANES_N * 4;
    const int mine = tile0 + threadIdx.x % BN, across = (width + 1) / 2;
    Patches patches(x, inputs, height, width, mine);
    const float* filters = turned + blockIdx.x * ((inputs + DEPTH - 1) / DEPTH * U_FLOATS) + threadIdx.x * 4;
    const auto bring = [&](float* to, int in0) {
#pragma unroll
        for (int i = 0; i < U_FLOATS; i += GROUP * 4) copy4(to + threadIdx.x * 4 + i, filters + i);
        asm volatile("cp.async.commit_group;" ::: "memory");
        filters += U_FLOATS;
        patches.load(in0);
    };
    float c[2][OUT][PX] = {};
    Fragment f[2];
    bring(shared, 0);
    patches.store(shared + U_FLOATS);
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    const float *us = shared + place * BM + row, *vs = shared + U_FLOATS + place * BN + column;
    float* next = shared + BUFFER;
    f[0].read(us, vs);
    int away = BUFFER;
#pragma unroll 1
    for (int in0 = DEPTH; in0 < inputs; in0 += DEPTH) {
        bring(next, in0);
        multiply_step<true>(c, f, patches, us, vs, next, away);
        us += away, vs += away, next -= away, away = -away;
    }
    multiply_step<false>(c, f, patches, us, vs, next, away);
#pragma unroll
    for (int q = 0; q < OUT; q += 4) {
        __syncthreads();  // what was there before is read
#pragma unroll
        for (int p = 0; p < 2; ++p)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < PX; j += 4)
                    *reinterpret_cast<float4*>(shared + ((place + p) * ROWS + row + i) * ROW + column + j * LANES_N) =
                        make_float4(c[p][q + i][j], c[p][q + i][j + 1], c[p][q + i][j + 2], c[p][q + i][j + 3]);
        __syncthreads();
#pragma unroll
        for (int r = threadIdx.x / BN; r < ROWS; r += GROUP / BN) {
            const int out = out0 + q * LANES_M + r;
            if (out >= outputs || mine >= (height + 1) / 2 * across) break;
            float pixels[2][2];
            turn_back(pixels, shared + r * ROW + threadIdx.x % BN, ROWS * ROW);
            store_tile(y + out * patches.plane, pixels, mine / across * 2, mine % across * 2, height, width);
        }
    }
}

// For few input channels: what Winograd's way adds before it multiplies would not drown in the other channels' rounding, as
// where padding leaves a pixel a few small terms beside large ones.
extern "C" __global__ void __launch_bounds__(128)
convolve_few(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int inputs, int outputs,
             int height, int width) {
    const int plane = height * width, pixel = blockIdx.x * 128 + threadIdx.x, out = blockIdx.y;
    if (pixel >= plane) return;
    const int row = pixel / width, column = pixel % width;
    float sum = 0.f;
    for (int in = 0; in < inputs; ++in)
#pragma unroll
        for (int t = 0; t < 9; ++t) {
            const int r = row + t / 3 - 1, c = column + t % 3 - 1;
            const bool inside = r >= 0 && r < height && c >= 0 && c < width;
            if (inside) sum += w[(static_cast<long long>(out) * inputs + in) * 9 + t] * x[(static_cast<long long>(in) * height + r) * width + c];
        }
    y[static_cast<long long>(out) * plane + pixel] = sum;
}

#else  // WINOGRAD

// Filters lie as outputs x 9 * inputs; patches, 9 * inputs x pixels, are gathered on their way to shared memory.
constexpr int LANES_M = 4, LANES_N = 8;  // a warp covers 4 x 8 threads: few distinct addresses a shared load
constexpr int WARPS_N = BN / (LANES_N * PX), SLICE_THREADS = BM / OUT * (BN / PX), GROUP = SLICES * SLICE_THREADS;
constexpr int SLICE = DEPTH / SLICES;  // steps of one thread
constexpr int LDA = DEPTH + 4;         // padded: lanes of a warp read rows of filters at different banks
constexpr int A_FLOATS = BM * LDA, B_FLOATS = DEPTH * BN;
constexpr int TILE_FLOATS = 2 * (A_FLOATS + B_FLOATS), SUM_FLOATS = SLICES * BM * BN;
constexpr int SHARED_FLOATS = TILE_FLOATS > SUM_FLOATS ? TILE_FLOATS : SUM_FLOATS;
constexpr int A_VECTORS = BM * DEPTH / 4, A_LOADS = (A_VECTORS + GROUP - 1) / GROUP;
constexpr int B_DOWN = GROUP / (BN / 4), B_LOADS = DEPTH / B_DOWN;
constexpr int CHUNKS = BM * BN / 4 / GROUP;  // groups of four pixels that a thread finishes

// One step's filters and patches, in registers between global and shared memory: the same four pixels at each depth.
template <bool WHOLE>
struct Step {
    const float *__restrict__ x, *__restrict__ w;
    int inputs, outputs, depth, width, inside[4];  // by pixel: bits of the taps that lie in the image
    long long plane;
    float4 a[A_LOADS];
    float b[B_LOADS][4];

    __device__ __forceinline__ Step(const float* of_x, const float* of_w, int in, int outs, int height, int wide)
        : x(of_x), w(of_w), inputs(in), outputs(outs), depth(9 * in), width(wide), plane(static_cast<long long>(height) * wide) {
        const int pixel = blockIdx.x * BN + threadIdx.x % (BN / 4) * 4;
        x += pixel;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int row = (pixel + e) / wide, column = (pixel + e) % wide;
            inside[e] = 0;
#pragma unroll
            for (int t = 0; t < 9; ++t) {
                const int r = row + t / 3 - 1, c = column + t % 3 - 1;
                inside[e] |= static_cast<int>(pixel + e < plane && r >= 0 && r < height && c >= 0 && c < wide) << t;
            }
        }
    }

    __device__ __forceinline__ float4 load_filter(int out, int k) const {
        const float* from = w + static_cast<long long>(out) * depth + k;
        if constexpr (WHOLE) return *reinterpret_cast<const float4*>(from);
        const int left = out < outputs ? depth - k : 0;
        return make_float4(left > 0 ? from[0] : 0.f, left > 1 ? from[1] : 0.f, left > 2 ? from[2] : 0.f, left > 3 ? from[3] : 0.f);
    }

    __device__ __forceinline__ void load(int k0) {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int v = threadIdx.x + i * GROUP;
            if (A_VECTORS % GROUP == 0 || v < A_VECTORS)
                a[i] = load_filter(blockIdx.y * BM + v / (DEPTH / 4), k0 + v % (DEPTH / 4) * 4);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const unsigned at = k0 + threadIdx.x / (BN / 4) + i * B_DOWN, channel = at / 9, tap = at % 9;
            const float* from = x + channel * plane + (static_cast<int>(tap / 3) - 1) * width + static_cast<int>(tap % 3) - 1;
#pragma unroll
            for (int e = 0; e < 4; ++e)
                b[i][e] = (inside[e] >> tap & 1) != 0 && (WHOLE || at < depth) ? from[e] : 0.f;
        }
    }

    __device__ __forceinline__ void store(float* As, float* Bs) const {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int v = threadIdx.x + i * GROUP;
            if (A_VECTORS % GROUP == 0 || v < A_VECTORS)
                *reinterpret_cast<float4*>(As + v / (DEPTH / 4) * LDA + v % (DEPTH / 4) * 4) = a[i];
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i)
            *reinterpret_cast<float4*>(Bs + (threadIdx.x + i * GROUP) * 4) = make_float4(b[i][0], b[i][1], b[i][2], b[i][3]);
    }
};

// The thread's sums: rows lie LANES_M apart, columns come in groups of four that lie 4 * LANES_N apart.
struct Sums {
    float c[OUT][PX];
    int row, column, first;

    __device__ __forceinline__ Sums() {
        const int lane = threadIdx.x % 32, warp = threadIdx.x % SLICE_THREADS / 32;
        row = warp / WARPS_N * (LANES_M * OUT) + lane / LANES_N;
        column = warp % WARPS_N * (LANES_N * PX) + lane % LANES_N * 4;
        first = threadIdx.x / SLICE_THREADS * SLICE;
#pragma unroll
        for (int i = 0; i < OUT; ++i)
#pragma unroll
            for (int j = 0; j < PX; ++j) c[i][j] = 0.f;
    }

    __device__ __forceinline__ void multiply(const float* As, const float* Bs) {
#pragma unroll(OUT * PX >= 32 ? 2 : 4)
        for (int d = first; d < first + SLICE; d += 4) {
            float a[OUT][4], b[PX];
#pragma unroll
            for (int i = 0; i < OUT; ++i)
                unpack(a[i], *reinterpret_cast<const float4*>(As + (row + i * LANES_M) * LDA + d));
#pragma unroll
            for (int e = 0; e < 4; ++e) {
#pragma unroll
                for (int j = 0; j < PX; j += 4)
                    unpack(b + j, *reinterpret_cast<const float4*>(Bs + (d + e) * BN + column + j * LANES_N));
#pragma unroll
                for (int i = 0; i < OUT; ++i)
#pragma unroll
                    for (int j = 0; j < PX; ++j) c[i][j] += a[i][e] * b[j];
            }
        }
    }

    // Leaves the sums in shared memory, where the block's threads finish equal shares of the tile.
    __device__ __forceinline__ void leave(float* shared) const {
        float* mine = shared + threadIdx.x / SLICE_THREADS * (BM * BN) + row * BN + column;
#pragma unroll
        for (int i = 0; i < OUT; ++i)
#pragma unroll
            for (int j = 0; j < PX; j += 4)
                *reinterpret_cast<float4*>(mine + i * LANES_M * BN + j * LANES_N) =
                    make_float4(c[i][j], c[i][j + 1], c[i][j + 2], c[i][j + 3]);
    }
};

template <bool WHOLE>
__device__ __forceinline__ void convolve(const float* x, const float* w, float* y, int inputs, int outputs, int height,
                                         int width) {
    __shared__ __align__(16) float shared[SHARED_FLOATS];
    float *As = shared, *Bs = shared + 2 * A_FLOATS;
    Step<WHOLE> step(x, w, inputs, outputs, height, width);
    Sums sums;
    step.load(0);
    step.store(As, Bs);
    __syncthreads();
    for (int k = 0, at = 0; k < step.depth; k += DEPTH, at ^= 1) {
        const bool more = k + DEPTH < step.depth;
        if (more) step.load(k + DEPTH);
        sums.multiply(As + at * A_FLOATS, Bs + at * B_FLOATS);
        if (more) step.store(As + (at ^ 1) * A_FLOATS, Bs + (at ^ 1) * B_FLOATS);
        __syncthreads();
    }
    sums.leave(shared);
    __syncthreads();
#pragma unroll
    for (int q = 0; q < CHUNKS; ++q) {
        const int at = (q * GROUP + threadIdx.x) * 4, out = blockIdx.y * BM + at / BN, pixel = blockIdx.x * BN + at % BN;
        float4 sum = *reinterpret_cast<const float4*>(shared + at);
#pragma unroll
        for (int s = 1; s < SLICES; ++s) {
            const float4 more = *reinterpret_cast<const float4*>(shared + s * BM * BN + at);
            sum = make_float4(sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w);
        }
        float* to = y + out * step.plane + pixel;
        if constexpr (WHOLE) {
            if (pixel < step.plane) *reinterpret_cast<float4*>(to) = sum;
        } else if (out < outputs) {
            if (pixel < step.plane) to[0] = sum.x;
            if (pixel + 1 < step.plane) to[1] = sum.y;
            if (pixel + 2 < step.plane) to[2] = sum.z;
            if (pixel + 3 < step.plane) to[3] = sum.w;
        }
    }
}

// For whole tiles of outputs, whole steps, and pixels that lie on 16 bytes in every plane.
extern "C" __global__ void __launch_bounds__(GROUP)
convolve_whole(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int inputs, int outputs,
               int height, int width) {
    convolve<true>(x, w, y, inputs, outputs, height, width);
}

// For every other shape.
extern "C" __global__ void __launch_bounds__(GROUP)
convolve_any(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int inputs, int outputs,
             int height, int width) {
    convolve<false>(x, w, y, inputs, outputs, height, width);
}

#endif  // WINOGRAD
