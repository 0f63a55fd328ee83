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
//   WINDOW   with WAY 2: how many tiles before it are asked at once: 1, or a multiple of 32. No more tiles than that are
//            done in the time of one answer

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

// Where a tile waits to be turned, on its way in and then on its way out; a scan of the block lies between. Value `at` has
// its place at at + at / 32, which keeps lanes on different banks.
struct Stage {
    int *neighbours, *own;  // where the thread's values lie THREADS apart, and where its own run begins

    __device__ __forceinline__ Stage() {
        __shared__ int shared[TILE + TILE / 32];
        static_assert(32 % ITEMS == 0, "a run would have a gap");
        const unsigned thread = threadIdx.x;
        neighbours = shared + thread + thread / 32;
        own = shared + thread * ITEMS + thread * ITEMS / 32;
    }

    __device__ __forceinline__ int& apart(int i) const { return neighbours[i * (THREADS + THREADS / 32)]; }
};

// A tile, of which each thread holds ITEMS neighbours. What lies behind the end is zero.
struct Tile {
    int v[ITEMS];

    __device__ __forceinline__ void load(const int* __restrict__ x, int start, int n) {
        const int first = start + threadIdx.x * ITEMS;
        if constexpr (STAGED == 1) {
            const Stage stage;
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                const int at = i * THREADS + threadIdx.x;
                v[i] = start + at < n ? x[start + at] : 0;
            }
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) stage.apart(i) = v[i];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) v[i] = stage.own[i];
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
            const Stage stage;
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) stage.own[i] = v[i];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                const int at = i * THREADS + threadIdx.x;
                if (start + at < n) y[start + at] = stage.apart(i);
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

__device__ __forceinline__ unsigned long long ask(const unsigned long long* word) {
    return *reinterpret_cast<const volatile unsigned long long*>(word);
}

// The sum of all tiles before `tile`; with a window of 32 or more, all lanes of the first warp come here.
__device__ __forceinline__ int look_back(const unsigned long long* words, int tile) {
    int before = 0;
    if constexpr (WINDOW == 1) {
        for (int t = tile - 1; t >= 0; --t) {
            unsigned long long said;
            do said = ask(words + t);
            while (said < OWN);
            before += static_cast<int>(said);
            if (said >= PREFIX) break;
        }
    } else {
        constexpr int EACH = (WINDOW + 31) / 32;
        const int lane = threadIdx.x;
        bool done = false;
        for (int last = tile - 1; last >= 0 && !done; last -= WINDOW) {
            unsigned long long said[EACH];  // asked all at once, the nearest first
#pragma unroll
            for (int e = 0; e < EACH; ++e) said[e] = last - 32 * e >= lane ? ask(words + last - 32 * e - lane) : PREFIX;
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                if (done) continue;
                while (said[e] < OWN) said[e] = ask(words + last - 32 * e - lane);
                const unsigned with_prefix = __ballot_sync(0xffffffffu, said[e] >= PREFIX);
                const int nearest = with_prefix == 0 ? 32 : __ffs(with_prefix) - 1;  // what lies behind it, it has
                if (lane <= nearest) before += static_cast<int>(said[e]);
                done = with_prefix != 0;
            }
        }
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2) before += __shfl_xor_sync(0xffffffffu, before, apart);
    }
    return before;
}

// WAY 2. Tiles are numbered in the order in which blocks begin, so that those before one are done or running. `counts`
// holds how many began and how many asked for the last time: the last of these leaves all words as zero, as they came,
// so that no launch has to clear them.
extern "C" __global__ void __launch_bounds__(THREADS, 1280 / THREADS)
scan_once(const int* __restrict__ x, int* __restrict__ y, unsigned long long* words, int* counts, int n) {
    __shared__ int shared_tile, shared_before;
    if (threadIdx.x == 0) shared_tile = atomicAdd(counts, 1);
    __syncthreads();
    const int tile = shared_tile, start = tile * TILE;
    Tile values;
    values.load(x, start, n);
    int before = values.sum();
    const int total = before_in_block(before);
    if (threadIdx.x < (WINDOW == 1 ? 1 : 32)) {
        if (threadIdx.x == 0 && tile > 0) publish(words + tile, OWN, total);
        const int sum = tile > 0 ? look_back(words, tile) : 0;
        if (threadIdx.x == 0) {
            publish(words + tile, PREFIX, sum + total);
            shared_before = sum;
        }
    }
    __syncthreads();
    values.scan(shared_before + before);
    values.store(y, start, n);
    if (threadIdx.x >= 32) return;
    int done = 0;  // counted last, as nobody waits for it
    if (threadIdx.x == 0) {
        __threadfence();
        done = atomicAdd(counts + 1, 1);
        __threadfence();
    }
    done = __shfl_sync(0xffffffffu, done, 0);
    __syncwarp();  // the other lanes' stores come behind the count
    if (done != static_cast<int>(gridDim.x) - 1) return;
    for (int t = threadIdx.x; t < static_cast<int>(gridDim.x); t += 32) words[t] = 0;
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
