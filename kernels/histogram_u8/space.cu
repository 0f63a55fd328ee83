// A space of histograms of bytes.
//
// The parameters are macros, defined above this text for each configuration:
//   THREADS  of a block
//   COPIES   histograms of a block in shared memory: warps of the same rest share one; 32: one a lane, in its own bank
//   BYTES    of one load: 1, 4 or 16
//   RUNS     1: a thread counts equal neighbours in a register and adds them at once; 0: one addition a byte
//   MERGE    0: bins are cleared in a first launch, blocks add to them; 1: blocks write theirs, a second launch adds;
//            2: blocks write theirs, and the one with the last ticket adds

constexpr bool LANES = COPIES == 32;
constexpr int BINS = 256, PITCH = LANES ? BINS : BINS + 1;  // copies of warps begin in different banks
constexpr int STRIDE = LANES ? 32 : 1;                      // from bin to bin of a copy

template <int WIDTH>
struct LoadOf {
    using Type = unsigned char;
};
template <>
struct LoadOf<4> {
    using Type = unsigned;
};
template <>
struct LoadOf<16> {
    using Type = uint4;
};
using Load = LoadOf<BYTES>::Type;

struct Counter {
    int* bins;
    int value, count;

    __device__ __forceinline__ explicit Counter(int* own) : bins(own), value(0), count(0) {}

    __device__ __forceinline__ void add(int byte) {
        if constexpr (RUNS == 1) {
            if (byte != value) {
                flush();
                value = byte, count = 0;
            }
            ++count;
        } else {
            atomicAdd(bins + byte * STRIDE, 1);
        }
    }

    __device__ __forceinline__ void flush() {
        if (RUNS == 1 && count > 0) atomicAdd(bins + value * STRIDE, count);
    }

    __device__ __forceinline__ void add_word(unsigned word) {
#pragma unroll
        for (int b = 0; b < 4; ++b) add(word >> 8 * b & 255);
    }

    __device__ __forceinline__ void add_all(unsigned char byte) { add(byte); }
    __device__ __forceinline__ void add_all(unsigned word) { add_word(word); }
    __device__ __forceinline__ void add_all(uint4 words) {
        add_word(words.x), add_word(words.y), add_word(words.z), add_word(words.w);
    }
};

#if MERGE == 0
extern "C" __global__ void clear(int* counts) {
    counts[threadIdx.x] = 0;
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
histogram(const unsigned char* __restrict__ x, int* counts, int* partial, int* ticket, int n) {
    __shared__ int own[COPIES * PITCH];
    for (int i = threadIdx.x; i < COPIES * PITCH; i += THREADS) own[i] = 0;
    __syncthreads();
    Counter counter(LANES ? own + threadIdx.x % 32 : own + threadIdx.x / 32 % COPIES * PITCH);
    const int first = blockIdx.x * THREADS + threadIdx.x, stride = gridDim.x * THREADS, whole = n / BYTES;
    // The next load is under way while the bytes of this one are added.
    Load next = first < whole ? reinterpret_cast<const Load*>(x)[first] : Load{};
    for (int i = first; i < whole; i += stride) {
        const Load now = next;
        if (i + stride < whole) next = reinterpret_cast<const Load*>(x)[i + stride];
        counter.add_all(now);
    }
    if (first < n - whole * BYTES) counter.add(x[whole * BYTES + first]);  // fewer than a load's bytes are left
    counter.flush();
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += THREADS) {
        int sum = 0;
#pragma unroll
        for (int c = 0; c < COPIES; ++c) sum += LANES ? own[bin * 32 + (c + bin) % 32] : own[c * PITCH + bin];
        if constexpr (MERGE == 0) {
            if (sum != 0) atomicAdd(counts + bin, sum);
        } else {
            __stcg(partial + blockIdx.x * BINS + bin, sum);
        }
    }
    if constexpr (MERGE == 2) {
        __shared__ int turn;
        __syncthreads();  // all bins of the block are written before one thread says so
        if (threadIdx.x == 0) {
            __threadfence();
            turn = atomicAdd(ticket, 1);
            __threadfence();
        }
        __syncthreads();
        if (turn != static_cast<int>(gridDim.x) - 1) return;
        if (threadIdx.x == 0) *ticket = 0;
        for (int bin = threadIdx.x; bin < BINS; bin += THREADS) {
            int sum = 0;
            for (int b = 0; b < static_cast<int>(gridDim.x); ++b) sum += __ldcg(partial + b * BINS + bin);
            counts[bin] = sum;
        }
    }
}

#if MERGE == 1
// A block a bin, its threads add the blocks' counts.
extern "C" __global__ void __launch_bounds__(128)
add_blocks(const int* __restrict__ partial, int* __restrict__ counts, int blocks) {
    __shared__ int sums[4];
    int sum = 0;
    for (int b = threadIdx.x; b < blocks; b += 128) sum += partial[b * BINS + blockIdx.x];
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) counts[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
}
#endif
