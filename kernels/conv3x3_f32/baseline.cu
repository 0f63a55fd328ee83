// The kernel that runs today: a block makes 32 x 8 pixels of four output channels, one pixel a thread.
//
// For each input channel the block brings a tile with its margin of one pixel, and the four filters, to shared memory.

constexpr int WIDE = 32, HIGH = 8, OUT = 4;

extern "C" __global__ void __launch_bounds__(WIDE * HIGH)
conv3x3(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int inputs, int outputs,
        int height, int width)
{
    __shared__ float tile[HIGH + 2][WIDE + 2], filters[OUT][9];
    const int thread = threadIdx.y * WIDE + threadIdx.x;
    const int row0 = blockIdx.y * HIGH, column0 = blockIdx.x * WIDE, out0 = blockIdx.z * OUT;
    float sums[OUT] = {};
    for (int in = 0; in < inputs; ++in) {
        for (int i = thread; i < (HIGH + 2) * (WIDE + 2); i += WIDE * HIGH) {
            const int row = row0 + i / (WIDE + 2) - 1, column = column0 + i % (WIDE + 2) - 1;
            const bool inside = row >= 0 && row < height && column >= 0 && column < width;
            tile[i / (WIDE + 2)][i % (WIDE + 2)] = inside ? x[((long long)in * height + row) * width + column] : 0.0f;
        }
        if (thread < OUT * 9) {
            const int out = out0 + thread / 9;
            filters[thread / 9][thread % 9] = out < outputs ? w[((long long)out * inputs + in) * 9 + thread % 9] : 0.0f;
        }
        __syncthreads();
        for (int t = 0; t < 9; ++t) {
            const float value = tile[threadIdx.y + t / 3][threadIdx.x + t % 3];
            for (int o = 0; o < OUT; ++o) sums[o] = fmaf(filters[o][t], value, sums[o]);
        }
        __syncthreads();
    }
    const int row = row0 + threadIdx.y, column = column0 + threadIdx.x;
    if (row >= height || column >= width) return;
    for (int o = 0; o < OUT; ++o)
        if (out0 + o < outputs) y[((long long)(out0 + o) * height + row) * width + column] = sums[o];
}
