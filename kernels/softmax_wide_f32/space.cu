// A space of softmaxes of few, very long rows, y[r, c] = exp(x[r, c] - max x[r, :]) / sum exp(x[r, :] - max x[r, :]).
//
// The parameters are macros, defined above this text for each configuration:
//   THREADS  of a block
//   VEC      values of one load: 1, 2 or 4
//   FLIGHT   loads of a thread that are in flight together
//   CHUNK    columns of a block, where several share a row
//   WAY      0: one block a row, maximum and sum in one pass, then the quotients
//            1: two launches of a block a chunk: parts of rows (maximum and sum in one pass), then quotients, for which
//               each block joins all parts of its row
//            2: three launches of a block a chunk: maxima, sums, quotients
//            3: as 1, a quarter of the rows at a time, so that it is still in the level-2 cache when it is read again
//            4: one launch, a cluster a row: its blocks keep CHUNK columns each in registers and tell each other their
//               parts, so that a row is read once; rows that no cluster of 8 can keep go as with 1
//            5: as 4 with clusters that stay and draw rows by ticket: the next three rows are on their way to shared
//               memory while one is in registers, so that loads never wait for a row's exchange or for a cluster's end
//            6: as 5 with one row on its way, and two blocks on a multiprocessor
//            7, 8: as 5 and 6, and parts are told by st.async, which each block's barrier in shared memory counts: a barrier of
//               the cluster would first wait for the stores of the row before
//            9: as 8, and each load of the next row follows a store of this one: memory is asked for both in turn
//   FAST     1: powers by the multiprocessor's own power of two, whose exponent is rounded once more
//   HINT     1, with WAY 7 and above: what is stored is among the first to leave the level-2 cache (what is loaded would need
//            a cache policy, which a trial's screen leaves to a reviewer)
//   BACK     1: the quotients' blocks take rows and chunks from the end, which was read last and may still be in the cache

constexpr int WARPS = THREADS / 32;

__device__ __forceinline__ float lowest() {
    return __int_as_float(0xff800000);  // minus infinity
}

// exp(distance), of a distance that is not above zero; what is below the smallest normal float may be zero.
__device__ __forceinline__ float power(float distance) {
    if constexpr (FAST == 0) return expf(distance);
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(distance * 1.4426950408889634f));
    return result;
}

template <int WIDTH>
__device__ __forceinline__ void get(const float* p, float* v) {
    if constexpr (WIDTH == 4) {
        const float4 q = *reinterpret_cast<const float4*>(p);
        v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
    } else if constexpr (WIDTH == 2) {
        const float2 q = *reinterpret_cast<const float2*>(p);
        v[0] = q.x, v[1] = q.y;
    } else {
        v[0] = *p;
    }
}

template <int WIDTH>
__device__ __forceinline__ void put(float* p, const float* v) {
    if constexpr (WIDTH == 4) *reinterpret_cast<float4*>(p) = make_float4(v[0], v[1], v[2], v[3]);
    else if constexpr (WIDTH == 2) *reinterpret_cast<float2*>(p) = make_float2(v[0], v[1]);
    else *p = v[0];
}

// As `put`; with HINT 1 the line is among the first to leave the cache.
template <int WIDTH>
__device__ __forceinline__ void put_last(float* p, const float* v) {
    if constexpr (HINT == 0) put<WIDTH>(p, v);
    else if constexpr (WIDTH == 4) __stcs(reinterpret_cast<float4*>(p), make_float4(v[0], v[1], v[2], v[3]));
    else if constexpr (WIDTH == 2) __stcs(reinterpret_cast<float2*>(p), make_float2(v[0], v[1]));
    else __stcs(p, v[0]);
}

// What is known of a part of a row: its maximum, and the sum of exp(x - maximum). An empty part is {-inf, 0}.
struct Part {
    float maximum, sum;

    __device__ __forceinline__ void join(float other_maximum, float other_sum) {
        const float both = fmaxf(maximum, other_maximum);
        // equal maxima need no factor; for two of minus infinity it would be NaN
        const float mine = maximum == both ? sum : sum * expf(maximum - both);
        const float others = other_maximum == both ? other_sum : other_sum * expf(other_maximum - both);
        maximum = both;
        sum = mine + others;
    }
};

// Every thread of the block comes here and gets the same part.
__device__ __forceinline__ Part join_block(Part p) {
    __shared__ Part parts[WARPS];
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
        const float maximum = __shfl_xor_sync(0xffffffffu, p.maximum, apart);
        const float sum = __shfl_xor_sync(0xffffffffu, p.sum, apart);
        p.join(maximum, sum);
    }
    __syncthreads();  // an earlier join of this block may still be read
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = p;
    __syncthreads();
    p = parts[0];
    for (int w = 1; w < WARPS; ++w) p.join(parts[w].maximum, parts[w].sum);
    return p;
}

// The thread's values of columns first to last - 1, FLIGHT loads at a time: body(values, column, how many loads).
template <int WIDTH, class Body>
__device__ __forceinline__ void each(const float* row, int first, int last, Body body) {
    for (int i = first + threadIdx.x * WIDTH; i < last; i += THREADS * WIDTH * FLIGHT) {
        float v[FLIGHT][WIDTH];
#pragma unroll
        for (int f = 0; f < FLIGHT; ++f) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) v[f][e] = lowest();
            if (i + f * THREADS * WIDTH < last) get<WIDTH>(row + i + f * THREADS * WIDTH, v[f]);
        }
        body(v, i);
    }
}

template <int WIDTH>
__device__ __forceinline__ Part part_of(const float* row, int first, int last) {
    Part p = {lowest(), 0.f};
    each<WIDTH>(row, first, last, [&](const float (&v)[FLIGHT][WIDTH], int) {
        Part more = {lowest(), 0.f};
#pragma unroll
        for (int f = 0; f < FLIGHT; ++f)
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) more.maximum = fmaxf(more.maximum, v[f][e]);
        const float from = more.maximum == lowest() ? 0.f : more.maximum;
#pragma unroll
        for (int f = 0; f < FLIGHT; ++f)
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) more.sum += power(v[f][e] - from);
        p.join(more.maximum, more.sum);
    });
    return join_block(p);
}

template <int WIDTH>
__device__ __forceinline__ void write(const float* row, float* to, int first, int last, Part p) {
    const float scale = 1.f / p.sum;
    each<WIDTH>(row, first, last, [&](const float (&v)[FLIGHT][WIDTH], int column) {
#pragma unroll
        for (int f = 0; f < FLIGHT; ++f) {
            if (column + f * THREADS * WIDTH >= last) continue;
            float quotients[WIDTH];
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) quotients[e] = power(v[f][e] - p.maximum) * scale;
            put<WIDTH>(to + column + f * THREADS * WIDTH, quotients);
        }
    });
}

// A block's chunk of a row.
struct Chunk {
    int row;
    long long start;
    int first, last;

    __device__ __forceinline__ Chunk(int of_row, int chunk, int cols)
        : row(of_row), start(static_cast<long long>(row) * cols), first(chunk * CHUNK), last(min(cols, (chunk + 1) * CHUNK)) {}
};

__device__ __forceinline__ Chunk chunk_to_read(int cols, int row0 = 0) {
    return Chunk(row0 + blockIdx.y, blockIdx.x, cols);
}

__device__ __forceinline__ Chunk chunk_to_write(int cols, int row0) {
    if constexpr (BACK == 1) return Chunk(row0 + gridDim.y - 1 - blockIdx.y, gridDim.x - 1 - blockIdx.x, cols);
    return Chunk(row0 + blockIdx.y, blockIdx.x, cols);
}

template <int WIDTH>
__device__ __forceinline__ void whole_row(const float* __restrict__ x, float* __restrict__ y, int cols) {
    const long long start = static_cast<long long>(blockIdx.x) * cols;
    write<WIDTH>(x + start, y + start, 0, cols, part_of<WIDTH>(x + start, 0, cols));
}

template <int WIDTH>
__device__ __forceinline__ void parts_of_rows(const float* __restrict__ x, float2* partial, int cols, int row0 = 0) {
    const Chunk chunk = chunk_to_read(cols, row0);
    const Part p = part_of<WIDTH>(x + chunk.start, chunk.first, chunk.last);
    if (threadIdx.x == 0) partial[chunk.row * gridDim.x + blockIdx.x] = make_float2(p.maximum, p.sum);
}

// With WAY 2 a part is a maximum alone: its sum is not there yet.
template <int WIDTH>
__device__ __forceinline__ void maxima_of_rows(const float* __restrict__ x, float2* partial, int cols) {
    const Chunk chunk = chunk_to_read(cols);
    Part p = {lowest(), 0.f};
    each<WIDTH>(x + chunk.start, chunk.first, chunk.last, [&](const float (&v)[FLIGHT][WIDTH], int) {
#pragma unroll
        for (int f = 0; f < FLIGHT; ++f)
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) p.maximum = fmaxf(p.maximum, v[f][e]);
    });
    p = join_block(p);
    if (threadIdx.x == 0) partial[blockIdx.y * gridDim.x + blockIdx.x] = make_float2(p.maximum, 0.f);
}

__device__ __forceinline__ Part joined(const float2* partial, int row, int chunks) {
    Part p = {lowest(), 0.f};
    for (int c = threadIdx.x; c < chunks; c += THREADS) {
        const float2 other = partial[row * chunks + c];
        p.join(other.x, other.y);
    }
    return join_block(p);
}

template <int WIDTH>
__device__ __forceinline__ void sums_of_rows(const float* __restrict__ x, const float2* maxima, float2* partial,
                                             int cols) {
    const Chunk chunk = chunk_to_read(cols);
    Part p = joined(maxima, chunk.row, gridDim.x);
    const float maximum = p.maximum, from = maximum == lowest() ? 0.f : maximum;
    p.sum = 0.f;
    each<WIDTH>(x + chunk.start, chunk.first, chunk.last, [&](const float (&v)[FLIGHT][WIDTH], int) {
#pragma unroll
        for (int f = 0; f < FLIGHT; ++f)
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) p.sum += power(v[f][e] - from);
    });
    p = join_block(p);
    if (threadIdx.x == 0) partial[blockIdx.y * gridDim.x + blockIdx.x] = make_float2(maximum, p.sum);
}

template <int WIDTH>
__device__ __forceinline__ void write_rows(const float* __restrict__ x, float* __restrict__ y, const float2* partial,
                                           int cols, int row0 = 0) {
    const Chunk chunk = chunk_to_write(cols, row0);
    write<WIDTH>(x + chunk.start, y + chunk.start, chunk.first, chunk.last, joined(partial, chunk.row, gridDim.x));
}

// Each in two forms: for rows whose length is a multiple of VEC, and for every other.
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)

#if WAY == 0
KERNEL row_any(const float* __restrict__ x, float* __restrict__ y, int cols) { whole_row<1>(x, y, cols); }
#if VEC > 1
KERNEL row_vectors(const float* __restrict__ x, float* __restrict__ y, int cols) { whole_row<VEC>(x, y, cols); }
#endif
#endif

#if WAY >= 4
constexpr int MOST = 8;  // blocks of a cluster

__device__ __forceinline__ void arrive_in_cluster() {
    __syncwarp();  // lanes that told something come back to the others: the barrier wants whole warps
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}

__device__ __forceinline__ void wait_for_cluster() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// The place of another block's shared memory that `own` is of this one's.
__device__ __forceinline__ unsigned place_in(int block, unsigned own) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(block));
    return there;
}

__device__ __forceinline__ void tell(unsigned there, Part p) {
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(p.maximum), "f"(p.sum) : "memory");
}

__device__ __forceinline__ void tell(unsigned there, int value) {
    asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(there), "r"(value) : "memory");
}

__device__ __forceinline__ float warp_maximum(float value) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, apart));
    return value;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(0xffffffffu, value, apart);
    return value;
}

// The values become powers of their distance to the warp's maximum; every lane gets the warp's part.
template <int KEPT, int WIDTH>
__device__ __forceinline__ Part powers(float (&v)[KEPT][WIDTH]) {
    Part own = {lowest(), 0.f};
#pragma unroll
    for (int f = 0; f < KEPT; ++f)
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) own.maximum = fmaxf(own.maximum, v[f][e]);
    own.maximum = warp_maximum(own.maximum);
    const float from = own.maximum == lowest() ? 0.f : own.maximum;
#pragma unroll
    for (int f = 0; f < KEPT; ++f)
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) own.sum += v[f][e] = power(v[f][e] - from);
    own.sum = warp_sum(own.sum);
    return own;
}

// The cluster's parts, which all its warps have told: each warp joins them in the same order.
__device__ __forceinline__ Part join_parts(const float2* parts) {
    constexpr int EACH = (MOST * WARPS + 31) / 32;
    const int count = gridDim.x * WARPS;
    Part p = {lowest(), 0.f};
    float2 told[EACH];
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int at = threadIdx.x % 32 + 32 * i;
        told[i] = at < count ? parts[at] : make_float2(lowest(), 0.f);
        p.maximum = fmaxf(p.maximum, told[i].x);
    }
    p.maximum = warp_maximum(p.maximum);
#pragma unroll
    for (int i = 0; i < EACH; ++i) p.sum += told[i].y * (told[i].x == lowest() ? 0.f : power(told[i].x - p.maximum));
    p.sum = warp_sum(p.sum);
    return p;
}

// A block's even share of a row's columns, and what of it is this thread's.
template <int WIDTH>
struct Share {
    static constexpr int KEPT = VEC * FLIGHT / WIDTH, APART = THREADS * WIDTH;  // columns from load to load
    int first, last;

    __device__ __forceinline__ explicit Share(int cols) {
        const int chunk = (cols + gridDim.x * WIDTH - 1) / (gridDim.x * WIDTH) * WIDTH;
        first = blockIdx.x * chunk + threadIdx.x * WIDTH;
        last = min(cols, static_cast<int>(blockIdx.x + 1) * chunk);
    }

    __device__ __forceinline__ bool has(int f) const { return first + f * APART < last; }

    // The quotients, from powers of distances to the warp's maximum; `then` follows each store.
    template <class Then>
    __device__ __forceinline__ void write(float* row, float (&v)[KEPT][WIDTH], Part own, Part whole, Then then) const {
        const float scale = power(own.maximum - whole.maximum) / whole.sum;
        float* to = row + first;
#pragma unroll
        for (int f = 0; f < KEPT; ++f) {
            if (!has(f)) continue;
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) v[f][e] *= scale;
            put_last<WIDTH>(to + f * APART, v[f]);
            then(f);
        }
    }
};
#endif

#if WAY == 4
template <int WIDTH>
__device__ __forceinline__ void row_in_cluster(const float* __restrict__ x, float* __restrict__ y, int cols) {
    using S = Share<WIDTH>;
    __shared__ float2 parts[MOST * WARPS];
    arrive_in_cluster();
    const S share(cols);
    const long long start = static_cast<long long>(blockIdx.y) * cols;
    const float* from = x + start + share.first;
    float v[S::KEPT][WIDTH];
#pragma unroll
    for (int f = 0; f < S::KEPT; ++f) {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) v[f][e] = lowest();
        if (share.has(f)) get<WIDTH>(from + f * S::APART, v[f]);
    }
    const Part own = powers(v);
    wait_for_cluster();  // all blocks have begun, so that their shared memory is there
    const int lane = threadIdx.x % 32;
    if (lane < gridDim.x) tell(place_in(lane, shared_address(parts + blockIdx.x * WARPS + threadIdx.x / 32)), own);
    arrive_in_cluster();
    wait_for_cluster();
    share.write(y + start, v, own, join_parts(parts), [](int) {});
}

KERNEL cluster_any(const float* __restrict__ x, float* __restrict__ y, int cols) { row_in_cluster<1>(x, y, cols); }
#if VEC > 1
KERNEL cluster_vectors(const float* __restrict__ x, float* __restrict__ y, int cols) { row_in_cluster<VEC>(x, y, cols); }
#endif
#endif

#if WAY >= 5
constexpr int RESIDENT = WAY == 5 || WAY == 7 ? 1 : 2;  // blocks of a multiprocessor
constexpr int AHEAD = RESIDENT == 1 ? 3 : 1;              // rows on their way

// A block's barrier waits for one arrival, its own, and for so many bytes that are told to it.
__device__ __forceinline__ void prepare(unsigned barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void tell_counted(unsigned there, unsigned barrier, Part p) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(there),
                 "f"(p.maximum), "f"(p.sum), "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void tell_counted(unsigned there, unsigned barrier, int value) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(there), "r"(value),
                 "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void wait_for_bytes(unsigned barrier, unsigned parity) {
    unsigned done;
    do {
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    } while (!done);
}

template <int WIDTH>
__device__ __forceinline__ void copy(unsigned to, const float* from) {
    if constexpr (WIDTH == 4) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(4 * WIDTH) : "memory");
}

template <int WIDTH>
__device__ __forceinline__ void read_back(unsigned from, float* v) {
    if constexpr (WIDTH == 4)
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(from) : "memory");
    else
        for (int e = 0; e < WIDTH; ++e) asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v[e]) : "r"(from + 4 * e) : "memory");
}

__device__ __forceinline__ void commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");  // an empty one too: they are counted
}

// A thread copies, and reads, its own values alone: no barrier is needed for them. `slot`: of this thread's first.
template <int WIDTH>
__device__ __forceinline__ void fetch(unsigned slot, const float* x, int row, int rows, int cols, Share<WIDTH> share) {
    using S = Share<WIDTH>;
    const float* from = x + (static_cast<long long>(row) * cols + share.first);
    if (row < rows) {
#pragma unroll
        for (int f = 0; f < S::KEPT; ++f)
            if (share.has(f)) copy<WIDTH>(slot + 4 * f * S::APART, from + f * S::APART);
    }
    commit();
}

constexpr bool COUNTED = WAY >= 7;  // parts are told by st.async

// A cluster's first AHEAD rows are given; each row it does draws one more. So many are drawn as there are rows, and
// who draws the last one leaves the count at zero.
template <int WIDTH>
__device__ __forceinline__ void rows_in_cluster(const float* __restrict__ x, float* __restrict__ y, int* tickets,
                                                int rows, int cols) {
    using S = Share<WIDTH>;
    extern __shared__ float4 ring[];  // AHEAD slots of CHUNK values
    __shared__ float2 parts[2][MOST * WARPS];
    __shared__ int drawn[2];
    __shared__ unsigned long long barriers[2];
    if (COUNTED && threadIdx.x == 0) {
        prepare(shared_address(barriers)), prepare(shared_address(barriers + 1));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    arrive_in_cluster();
    const S share(cols);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned first_slot = shared_address(ring) + 4 * WIDTH * threadIdx.x;
    asm volatile("" : "+r"(first_slot));  // made once, not anew for each copy
    int coming[AHEAD];  // in ascending order, here and at all times
#pragma unroll
    for (int a = 0; a < AHEAD; ++a) {
        coming[a] = blockIdx.y + a * gridDim.y;
        fetch(first_slot + 4 * a * CHUNK, x, coming[a], rows, cols, share);
    }
    // where lane b tells block b of this warp's part, and of a row that was drawn
    const int other = min(lane, static_cast<int>(gridDim.x) - 1);
    const unsigned there = place_in(other, shared_address(parts[0] + blockIdx.x * WARPS + warp));
    const unsigned drawn_there = place_in(other, shared_address(drawn));
    const unsigned own_barriers = shared_address(barriers), barriers_there = place_in(other, own_barriers);
    const unsigned bytes = gridDim.x * WARPS * sizeof(parts[0][0]) + sizeof(drawn[0]);
    const bool draws = blockIdx.x == 0 && warp == 0;
    unsigned parity = 0;  // of the two barriers' phases: one after the other completes
    wait_for_cluster();  // all blocks have begun, so that their shared memory is there
    for (int turn = 0, slot = 0; coming[0] < rows; turn ^= 1, slot = slot + 1 == AHEAD ? 0 : slot + 1) {
        int ticket = 0;
        if (draws && lane == 0) ticket = atomicAdd(tickets, 1);
        const unsigned values = first_slot + 4 * slot * CHUNK;
        float v[S::KEPT][WIDTH];
        asm volatile("cp.async.wait_group %0;" ::"n"(AHEAD - 1) : "memory");
#pragma unroll
        for (int f = 0; f < S::KEPT; ++f) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) v[f][e] = lowest();
            if (share.has(f)) read_back<WIDTH>(values + 4 * f * S::APART, v[f]);
        }
        const Part own = powers(v);
        // Two sets of parts, and two barriers: who writes a set again has met all that read it by the set between.
        const unsigned part_there = there + turn * static_cast<unsigned>(sizeof(parts[0]));
        if (draws) {
            ticket = __shfl_sync(0xffffffffu, ticket, 0);
            if (lane == 0 && ticket == rows - 1) *tickets = 0;
        }
        if constexpr (COUNTED) {
            if (threadIdx.x == 0) expect(own_barriers + 8 * turn, bytes);
            if (lane < gridDim.x) {
                tell_counted(part_there, barriers_there + 8 * turn, own);
                if (draws) tell_counted(drawn_there + 4 * turn, barriers_there + 8 * turn, ticket);
            }
            wait_for_bytes(own_barriers + 8 * turn, parity);
            parity ^= turn;
        } else {
            if (lane < gridDim.x) {
                tell(part_there, own);
                if (draws) tell(drawn_there + 4 * turn, ticket);
            }
            arrive_in_cluster();
            wait_for_cluster();
        }
        float* to = y + static_cast<long long>(coming[0]) * cols;
#pragma unroll
        for (int a = 1; a < AHEAD; ++a) coming[a - 1] = coming[a];
        const int next = coming[AHEAD - 1] = AHEAD * gridDim.y + drawn[turn];
        if constexpr (WAY == 9) {
            const float* from = x + (static_cast<long long>(next) * cols + share.first);
            share.write(to, v, own, join_parts(parts[turn]), [&](int f) {
                if (next < rows) copy<WIDTH>(values + 4 * f * S::APART, from + f * S::APART);
            });
            commit();
        } else {
            fetch(values, x, next, rows, cols, share);
            share.write(to, v, own, join_parts(parts[turn]), [](int) {});
        }
    }
}

#define RING extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)

RING ring_any(const float* __restrict__ x, float* __restrict__ y, int* tickets, int rows, int cols) {
    rows_in_cluster<1>(x, y, tickets, rows, cols);
}
RING ring_vectors(const float* __restrict__ x, float* __restrict__ y, int* tickets, int rows, int cols) {
    rows_in_cluster<VEC>(x, y, tickets, rows, cols);
}
#endif

#if WAY == 1 || WAY >= 4
KERNEL parts_any(const float* __restrict__ x, float2* partial, int cols) { parts_of_rows<1>(x, partial, cols); }
#if VEC > 1
KERNEL parts_vectors(const float* __restrict__ x, float2* partial, int cols) { parts_of_rows<VEC>(x, partial, cols); }
#endif
#endif

#if WAY == 2
KERNEL maxima_any(const float* __restrict__ x, float2* partial, int cols) { maxima_of_rows<1>(x, partial, cols); }
KERNEL sums_any(const float* __restrict__ x, const float2* maxima, float2* partial, int cols) {
    sums_of_rows<1>(x, maxima, partial, cols);
}
#if VEC > 1
KERNEL maxima_vectors(const float* __restrict__ x, float2* partial, int cols) { maxima_of_rows<VEC>(x, partial, cols); }
KERNEL sums_vectors(const float* __restrict__ x, const float2* maxima, float2* partial, int cols) {
    sums_of_rows<VEC>(x, maxima, partial, cols);
}
#endif
#endif

#if WAY == 1 || WAY == 2 || WAY >= 4
KERNEL write_any(const float* __restrict__ x, float* __restrict__ y, const float2* partial, int cols) {
    write_rows<1>(x, y, partial, cols);
}
#if VEC > 1
KERNEL write_vectors(const float* __restrict__ x, float* __restrict__ y, const float2* partial, int cols) {
    write_rows<VEC>(x, y, partial, cols);
}
#endif
#endif

#if WAY == 3
KERNEL parts_any(const float* __restrict__ x, float2* partial, int cols, int row0) {
    parts_of_rows<1>(x, partial, cols, row0);
}
KERNEL write_any(const float* __restrict__ x, float* __restrict__ y, const float2* partial, int cols, int row0) {
    write_rows<1>(x, y, partial, cols, row0);
}
#if VEC > 1
KERNEL parts_vectors(const float* __restrict__ x, float2* partial, int cols, int row0) {
    parts_of_rows<VEC>(x, partial, cols, row0);
}
KERNEL write_vectors(const float* __restrict__ x, float* __restrict__ y, const float2* partial, int cols, int row0) {
    write_rows<VEC>(x, y, partial, cols, row0);
}
#endif
#endif
