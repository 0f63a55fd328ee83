// A convolution with 3 x 3 filters, stride 1, padding 1, as a product of matrices that is never laid out: filters
// (outputs x 9 * inputs, as they lie) times patches (9 * inputs x pixels), which are gathered on their way to shared memory.
//
// A block of 128 threads makes 64 outputs of 128 pixels in steps of 8 along the 9 * inputs; a thread 8 x 8 of them. The next
// step goes through registers while this one is multiplied, and fragments are read one depth ahead.

constexpr int BM = 64, BN = 128, BK = 8, THREADS = 128, LDA = BM + 4;
constexpr int A_FLOATS = BK * LDA, B_FLOATS = BK * BN;

// What a thread brings: four neighbours of a filter, and four pixels at each of two depths.
template <bool WHOLE>
struct Source {
    const float *__restrict__ x, *__restrict__ w;
    int inputs, outputs, depth, plane, width;
    int out, k;               // of the filters' values
    int pixel, valid[4];      // of the first pixel; by tap, whether it lies inside
    float4 a;
    float b[2][4];

    __device__ __forceinline__ Source(const float* of_x, const float* of_w, int in, int outs, int height, int wide, int out0,
                                      int pixel0)
        : x(of_x), w(of_w), inputs(in), outputs(outs), depth(9 * in), plane(height * wide), width(wide),
          out(out0 + threadIdx.x / 2), k(threadIdx.x % 2 * 4), pixel(pixel0 + threadIdx.x % 32 * 4) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int row = (pixel + e) / width, column = (pixel + e) % width;
            valid[e] = 0;
#pragma unroll
            for (int t = 0; t < 9; ++t) {
                const int y = row + t / 3 - 1, z = column + t % 3 - 1;
                const bool inside = pixel + e < plane && y >= 0 && y < height && z >= 0 && z < width;
                valid[e] |= static_cast<int>(inside) << t;
            }
        }
    }

    __device__ __forceinline__ void load(int k0) {
        if constexpr (WHOLE) {
            a = *reinterpret_cast<const float4*>(w + static_cast<long long>(out) * depth + k0 + k);
        } else {
            float v[4];
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const bool there = out < outputs && k0 + k + e < depth;
                v[e] = there ? w[static_cast<long long>(out) * depth + k0 + k + e] : 0.f;
            }
            a = make_float4(v[0], v[1], v[2], v[3]);
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int at = k0 + threadIdx.x / 32 + 4 * i, channel = at / 9, tap = at - channel * 9;
            const float* from = x + static_cast<long long>(channel) * plane + pixel + (tap / 3 - 1) * width + tap % 3 - 1;
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const bool there = (valid[e] >> tap & 1) != 0 && (WHOLE || channel < inputs);
                b[i][e] = there ? from[e] : 0.f;
            }
        }
    }

    __device__ __forceinline__ void store(float* As, float* Bs) const {
        float* to = As + k * LDA + threadIdx.x / 2;
        to[0] = a.x, to[LDA] = a.y, to[2 * LDA] = a.z, to[3 * LDA] = a.w;
#pragma unroll
        for (int i = 0; i < 2; ++i)
            *reinterpret_cast<float4*>(Bs + (threadIdx.x / 32 + 4 * i) * BN + threadIdx.x % 32 * 4) =
                make_float4(b[i][0], b[i][1], b[i][2], b[i][3]);
    }
};

__device__ __forceinline__ void unpack(float* to, float4 v) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }

struct Fragment {
    float a[8], b[8];

    __device__ __forceinline__ void read(const float* As, const float* Bs, int row, int column, int d) {
        unpack(a, *reinterpret_cast<const float4*>(As + d * LDA + row));
        unpack(a + 4, *reinterpret_cast<const float4*>(As + d * LDA + row + 16));
        unpack(b, *reinterpret_cast<const float4*>(Bs + d * BN + column));
        unpack(b + 4, *reinterpret_cast<const float4*>(Bs + d * BN + column + 32));
    }
};

template <int AT, bool WHOLE>
__device__ __forceinline__ void step(float (&c)[8][8], Source<WHOLE>& source, Fragment (&f)[2], float* As, float* Bs,
                                     int row, int column, int next) {
    const float *a = As + AT * A_FLOATS, *b = Bs + AT * B_FLOATS;
    float *next_a = As + (1 - AT) * A_FLOATS, *next_b = Bs + (1 - AT) * B_FLOATS;
    const bool more = next < source.depth;
    if (more) source.load(next);
#pragma unroll
    for (int d = 0; d < BK; ++d) {
        if (d + 1 < BK) {
            f[(d + 1) % 2].read(a, b, row, column, d + 1);
        } else if (more) {
            source.store(next_a, next_b);
            __syncthreads();
            f[0].read(next_a, next_b, row, column, 0);
        }
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
            for (int j = 0; j < 8; ++j) c[i][j] += f[d % 2].a[i] * f[d % 2].b[j];
    }
}

template <bool WHOLE>
__device__ __forceinline__ void convolve(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y,
                                         int inputs, int outputs, int height, int width) {
    __shared__ __align__(16) float As[2 * A_FLOATS];
    __shared__ __align__(16) float Bs[2 * B_FLOATS];
    const int out0 = blockIdx.y * BM, pixel0 = blockIdx.x * BN, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / 2 * 32 + lane / 8 * 4, column = warp % 2 * 64 + lane % 8 * 4;
    float c[8][8] = {};
    Source<WHOLE> source(x, w, inputs, outputs, height, width, out0, pixel0);
    Fragment f[2];
    source.load(0);
    source.store(As, Bs);
    __syncthreads();
    f[0].read(As, Bs, row, column, 0);
    for (int k = 0; k < source.depth; k += 2 * BK) {
        step<0>(c, source, f, As, Bs, row, column, k + BK);
        if (k + BK < source.depth) step<1>(c, source, f, As, Bs, row, column, k + 2 * BK);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            const int out = out0 + row + i / 4 * 16 + i % 4, pixel = pixel0 + column + j * 8;
            float* to = y + static_cast<long long>(out) * source.plane + pixel;
            if (WHOLE) {
                if (pixel < source.plane)
                    *reinterpret_cast<float4*>(to) = make_float4(c[i][j], c[i][j + 1], c[i][j + 2], c[i][j + 3]);
            } else {
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (out < outputs && pixel + e < source.plane) to[e] = c[i][j + e];
            }
        }
}

// For whole tiles of outputs, whole steps, and pixels that lie on 16 bytes in every plane.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
convolve_whole(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int inputs, int outputs,
               int height, int width) {
    convolve<true>(x, w, y, inputs, outputs, height, width);
}

// For every other shape.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
convolve_any(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int inputs, int outputs,
             int height, int width) {
    convolve<false>(x, w, y, inputs, outputs, height, width);
}
