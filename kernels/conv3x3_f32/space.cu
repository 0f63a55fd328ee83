// A space of convolutions with 3 x 3 filters, stride 1, padding 1, channels first.
//
// The parameters are macros, defined above this text for each configuration:
//   WIDE, HIGH   threads of a block along columns and rows
//   PX           neighbouring pixels of a thread along a row (with WAY 2: 2)
//   OUT          output channels of a thread
//   DEPTH        input channels of one step: their tiles and filters lie in shared memory together
//   WAY          0: nine products a pixel, pixels from shared memory
//                1: nine products a pixel, pixels from the level-1 cache; only filters lie in shared memory
//                2: Winograd's F(2 x 2, 3 x 3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
//                   2016): 16 products for four pixels in place of 36

constexpr int PY = WAY == 2 ? 2 : 1, THREADS = WIDE * HIGH, FILTER = WAY == 2 ? 16 : 9;
constexpr int TILE_W = WIDE * PX + 2, TILE_H = HIGH * PY + 2, TILE = WAY == 1 ? 1 : TILE_W * TILE_H;
constexpr int HELD = WAY == 2 ? 16 : PX;  // sums of one output channel

struct Image {
    const float* x;
    int height, width;

    __device__ __forceinline__ float at(int row, int column) const {
        const bool inside = row >= 0 && row < height && column >= 0 && column < width;
        return inside ? x[static_cast<long long>(row) * width + column] : 0.f;
    }
};

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

// Filters of output channels out0 on, for input channels in0 on; zero where there is none.
__device__ __forceinline__ void load_filters(float* filters, const float* __restrict__ w, int out0, int in0, int inputs,
                                             int outputs) {
    for (int i = threadIdx.y * WIDE + threadIdx.x; i < OUT * DEPTH; i += THREADS) {
        const int out = out0 + i % OUT, in = in0 + i / OUT;
        const bool there = out < outputs && in < inputs;
        const float* from = w + (there ? (static_cast<long long>(out) * inputs + in) * 9 : 0);
        float g[9];
#pragma unroll
        for (int t = 0; t < 9; ++t) g[t] = there ? from[t] : 0.f;
        float* to = filters + i * FILTER;
        if constexpr (WAY == 2) {
            turn_filter(g, to);
        } else {
#pragma unroll
            for (int t = 0; t < 9; ++t) to[t] = g[t];
        }
    }
}

__device__ __forceinline__ void add_patch(float (&sums)[OUT][HELD], float (&patch)[PY + 2][PX + 2], const float* filters) {
#if WAY == 2
    turn_patch(patch);
#pragma unroll
    for (int o = 0; o < OUT; ++o)
#pragma unroll
        for (int t = 0; t < 16; ++t) sums[o][t] += filters[o * 16 + t] * patch[t / 4][t % 4];
#else
#pragma unroll
    for (int o = 0; o < OUT; ++o)
#pragma unroll
        for (int t = 0; t < 9; ++t) {
            const float factor = filters[o * 9 + t];
#pragma unroll
            for (int p = 0; p < PX; ++p) sums[o][p] += factor * patch[t / 3][p + t % 3];
        }
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
conv3x3(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int inputs, int outputs,
        int height, int width) {
    __shared__ float tiles[DEPTH * TILE], filters[DEPTH * OUT * FILTER];
    const int row0 = blockIdx.y * HIGH * PY, column0 = blockIdx.x * WIDE * PX, out0 = blockIdx.z * OUT;
    const int row = row0 + threadIdx.y * PY, column = column0 + threadIdx.x * PX;
    const long long plane = static_cast<long long>(height) * width;
    float sums[OUT][HELD] = {};
    for (int in0 = 0; in0 < inputs; in0 += DEPTH) {
        if (in0 > 0) __syncthreads();
        load_filters(filters, w, out0, in0, inputs, outputs);
        const int depth = min(DEPTH, inputs - in0);
        if constexpr (WAY != 1) {
            for (int i = threadIdx.y * WIDE + threadIdx.x; i < depth * TILE; i += THREADS) {
                const Image image = {x + (in0 + i / TILE) * plane, height, width};
                tiles[i] = image.at(row0 + i % TILE / TILE_W - 1, column0 + i % TILE_W - 1);
            }
        }
        __syncthreads();
        for (int d = 0; d < depth; ++d) {
            float patch[PY + 2][PX + 2];
#pragma unroll
            for (int r = 0; r < PY + 2; ++r)
#pragma unroll
                for (int c = 0; c < PX + 2; ++c) {
                    if constexpr (WAY == 1) {
                        const Image image = {x + (in0 + d) * plane, height, width};
                        patch[r][c] = image.at(row + r - 1, column + c - 1);
                    } else {
                        patch[r][c] = tiles[d * TILE + (threadIdx.y * PY + r) * TILE_W + threadIdx.x * PX + c];
                    }
                }
            add_patch(sums, patch, filters + d * OUT * FILTER);
        }
    }
#pragma unroll
    for (int o = 0; o < OUT; ++o) {
        if (out0 + o >= outputs) break;
        float pixels[PY][PX];
#if WAY == 2
        // A^T M A with A^T = [1 1 1 0; 0 1 -1 -1]
        float half[2][4];
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            half[0][c] = sums[o][c] + sums[o][4 + c] + sums[o][8 + c];
            half[1][c] = sums[o][4 + c] - sums[o][8 + c] - sums[o][12 + c];
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            pixels[r][0] = half[r][0] + half[r][1] + half[r][2];
            pixels[r][1] = half[r][1] - half[r][2] - half[r][3];
        }
#else
#pragma unroll
        for (int p = 0; p < PX; ++p) pixels[0][p] = sums[o][p];
#endif
#pragma unroll
        for (int r = 0; r < PY; ++r)
#pragma unroll
            for (int c = 0; c < PX; ++c)
                if (row + r < height && column + c < width)
                    y[(out0 + o) * plane + static_cast<long long>(row + r) * width + column + c] = pixels[r][c];
    }
}
