// A space of inclusive scans, y[i] = x[0] + ... + x[i].
//
// The parameters are macros, defined above this text for each configuration:
//   THREADS  of a block
//   ITEMS    values of a thread: a tile holds THREADS * ITEMS
//   STAGED   1: tiles go through shared memory, so that neighbouring threads touch neighbouring values; 0: a thread
//            loads and stores its own run of values, four at once
//   WAY      how a tile learns the sum of all tiles before it:
//            0  in two passes: sums of tiles, a scan of them by one block, then scans of tiles (x is read twice)
//            1  scans of tiles, a scan of their sums, then an addition (y is written twice)
//            2  in one pass, by looking back (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled
//               Look-back", 2016): a tile publishes its sum, then its prefix, and asks the tiles before it for theirs
//   WINDOW   with WAY 2: how many tiles before it are asked at once, 1 or 32

constexpr int TILE = THREADS * ITEMS, WARPS = THREADS / 32;

__device__ __forceinline__ int over_warp(int value) {
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, value, apart);
        if (static_cast<int>(threadIdx.x % 32) >= apart) value += other;
    }
    return value;
}

// Turns the thread's sum into the sum of all threads before it; returns the sum of the block.
__device__ __forceinline__ int before_in_block(int& value) {
    __shared__ int sums[WARPS];
    const int warp = threadIdx.x / 32, inclusive = over_warp(value);
    __syncthreads();  // an earlier scan of this block may still be read
    if (threadIdx.x % 32 == 31) sums[warp] = inclusive;
    __syncthreads();
    int before = 0, total = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
        if (w < warp) before += sums[w];
        total += sums[w];
    }
    value = before + inclusive - value;
    return total;
}

// A tile, of which each thread holds ITEMS neighbours. What lies behind the end is zero.
struct Tile {
    int v[ITEMS];

    __device__ __forceinline__ void load(const int* __restrict__ x, int start, int n) {
        const int first = start + threadIdx.x * ITEMS;
        if constexpr (STAGED == 1) {
            __shared__ int shared[TILE + TILE / 32];
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                const int at = i * THREADS + threadIdx.x;
                shared[at + at / 32] = start + at < n ? x[start + at] : 0;
            }
            __syncthreads();
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                const int at = threadIdx.x * ITEMS + i;
                v[i] = shared[at + at / 32];
            }
        } else if (first + ITEMS <= n) {
#pragma unroll
            for (int i = 0; i < ITEMS; i += 4) {
                const int4 q = *reinterpret_cast<const int4*>(x + first + i);
                v[i] = q.x, v[i + 1] = q.y, v[i + 2] = q.z, v[i + 3] = q.w;
            }
        } else {
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) v[i] = first + i < n ? x[first + i] : 0;
        }
    }

    __device__ __forceinline__ void store(int* __restrict__ y, int start, int n) const {
        const int first = start + threadIdx.x * ITEMS;
        if constexpr (STAGED == 1) {
            __shared__ int shared[TILE + TILE / 32];
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                const int at = threadIdx.x * ITEMS + i;
                shared[at + at / 32] = v[i];
            }
            __syncthreads();
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                const int at = i * THREADS + threadIdx.x;
                if (start + at < n) y[start + at] = shared[at + at / 32];
            }
        } else if (first + ITEMS <= n) {
#pragma unroll
            for (int i = 0; i < ITEMS; i += 4)
                *reinterpret_cast<int4*>(y + first + i) = make_int4(v[i], v[i + 1], v[i + 2], v[i + 3]);
        } else {
#pragma unroll
            for (int i = 0; i < ITEMS; ++i)
                if (first + i < n) y[first + i] = v[i];
        }
    }

    __device__ __forceinline__ int sum() const {
        int total = 0;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) total += v[i];
        return total;
    }

    // Values become prefix sums that begin with `before`.
    __device__ __forceinline__ void scan(int before) {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) v[i] = before += v[i];
    }
};

#if WAY == 2

// What a tile tells others, in one word so that flag and value are read together: nothing yet, its own sum, or the sum
// of all tiles up to and with it.
constexpr unsigned long long OWN = 1ull << 32, PREFIX = 2ull << 32;

__device__ __forceinline__ void publish(unsigned long long* word, unsigned long long flag, int value) {
    *reinterpret_cast<volatile unsigned long long*>(word) = flag | static_cast<unsigned>(value);
}

__device__ __forceinline__ unsigned long long ask(unsigned long long* word) {
    unsigned long long said;
    do said = *reinterpret_cast<volatile unsigned long long*>(word);
    while (said < OWN);
    return said;
}

// The sum of all tiles before `tile`; with a window of 32, all lanes of the first warp come here.
__device__ __forceinline__ int look_back(unsigned long long* words, int tile) {
    int before = 0;
    if constexpr (WINDOW == 1) {
        for (int t = tile - 1; t >= 0; --t) {
            const unsigned long long said = ask(words + t);
            before += static_cast<int>(said);
            if (said >= PREFIX) break;
        }
    } else {
        for (int last = tile - 1; last >= 0; last -= 32) {
            const int t = last - static_cast<int>(threadIdx.x);
            const unsigned long long said = t >= 0 ? ask(words + t) : PREFIX;
            const unsigned done = __ballot_sync(0xffffffffu, said >= PREFIX);
            const int nearest = done == 0 ? 32 : __ffs(done) - 1;  // lanes behind it would be counted twice
            int sum = static_cast<int>(threadIdx.x) <= nearest ? static_cast<int>(said) : 0;
#pragma unroll
            for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
            before += sum;
            if (done != 0) break;
        }
    }
    return before;
}

// WAY 2. Tiles are numbered in the order in which blocks begin, so that those before one are done or running. `counts`
// holds how many began and how many asked for the last time: the last of these leaves all words as zero, as they came,
// so that no launch has to clear them.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_once(const int* __restrict__ x, int* __restrict__ y, unsigned long long* words, int* counts, int n) {
    __shared__ int shared_tile, shared_before, last;
    if (threadIdx.x == 0) shared_tile = atomicAdd(counts, 1);
    __syncthreads();
    const int tile = shared_tile, start = tile * TILE;
    Tile values;
    values.load(x, start, n);
    int before = values.sum();
    const int total = before_in_block(before);
    if (threadIdx.x < WINDOW) {
        if (threadIdx.x == 0 && tile > 0) publish(words + tile, OWN, total);
        const int sum = tile > 0 ? look_back(words, tile) : 0;
        if (threadIdx.x == 0) {
            publish(words + tile, PREFIX, sum + total);
            shared_before = sum;
            __threadfence();
            last = atomicAdd(counts + 1, 1) == static_cast<int>(gridDim.x) - 1;
        }
    }
    __syncthreads();
    values.scan(shared_before + before);
    values.store(y, start, n);
    if (!last) return;
    for (int t = threadIdx.x; t < static_cast<int>(gridDim.x); t += THREADS) words[t] = 0;
    if (threadIdx.x < 2) counts[threadIdx.x] = 0;
}

#else

#if WAY == 0
// The first pass.
extern "C" __global__ void __launch_bounds__(THREADS)
sum_tiles(const int* __restrict__ x, int* __restrict__ sums, int n) {
    Tile values;
    values.load(x, blockIdx.x * TILE, n);
    int before = values.sum();
    const int total = before_in_block(before);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

#endif

// One block: sums[t] becomes the sum of all tiles before t.
extern "C" __global__ void __launch_bounds__(THREADS) scan_sums(int* sums, int tiles) {
    int before = 0;
    for (int start = 0; start < tiles; start += THREADS) {
        const int i = start + threadIdx.x;
        int own = i < tiles ? sums[i] : 0;
        const int total = before_in_block(own);
        if (i < tiles) sums[i] = before + own;
        before += total;
    }
}

#if WAY == 0
// The second pass.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_tiles(const int* __restrict__ x, int* __restrict__ y, const int* __restrict__ sums, int n) {
    Tile values;
    values.load(x, blockIdx.x * TILE, n);
    int before = values.sum();
    before_in_block(before);
    values.scan(sums[blockIdx.x] + before);
    values.store(y, blockIdx.x * TILE, n);
}

#else

extern "C" __global__ void __launch_bounds__(THREADS)
scan_alone(const int* __restrict__ x, int* __restrict__ y, int* __restrict__ sums, int n) {
    Tile values;
    values.load(x, blockIdx.x * TILE, n);
    int before = values.sum();
    const int total = before_in_block(before);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
    values.scan(before);
    values.store(y, blockIdx.x * TILE, n);
}

extern "C" __global__ void __launch_bounds__(THREADS)
add_sums(int* __restrict__ y, const int* __restrict__ sums, int n) {
    const int before = sums[blockIdx.x];
    for (int i = threadIdx.x; i < TILE; i += THREADS)
        if (blockIdx.x * TILE + i < n) y[blockIdx.x * TILE + i] += before;
}

#endif  // WAY 0 or 1
#endif  // WAY 2 or another
