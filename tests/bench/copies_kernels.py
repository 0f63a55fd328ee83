"""Kernels that only copy, for `copies_on_gpu.py`. CUDA C++ for NVRTC, by macros.

THREADS, VECTOR (floats in one load: 1, 2 or 4) and LOADS (of a thread, before its first store) shape `plain` and
`staying`; CHUNK (bytes, a multiple of 16) and STAGES (chunks in the ring) shape `bulk`, which wants sm_90.
"""

CHECKS = """
extern "C" __global__ void number(unsigned* x, unsigned words) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        x[i] = (i + 1u) * 2654435761u;  // odd: no two words are equal, and none is zero
    }
}

extern "C" __global__ void differ(const unsigned* x, const unsigned* y, unsigned words, unsigned* count) {
    unsigned found = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        found += x[i] != y[i];
    }
    if (found != 0) atomicAdd(count, found);
}
"""

BLOCKS = """
#if VECTOR == 4
typedef float4 Word;
#elif VECTOR == 2
typedef float2 Word;
#else
typedef float Word;
#endif

__device__ __forceinline__ void piece(const Word* __restrict__ x, Word* __restrict__ y, unsigned number) {
    const unsigned first = number * (THREADS * LOADS) + threadIdx.x;
    Word kept[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; ++k) kept[k] = x[first + k * THREADS];
    __syncthreads();  // so that no store of the block comes before a load of it
#pragma unroll
    for (int k = 0; k < LOADS; ++k) y[first + k * THREADS] = kept[k];
}

extern "C" __global__ void __launch_bounds__(THREADS) plain(const Word* __restrict__ x, Word* __restrict__ y) {
    piece(x, y, blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(THREADS) staying(const Word* __restrict__ x, Word* __restrict__ y,
                                                               unsigned pieces) {
    for (unsigned number = blockIdx.x; number < pieces; number += gridDim.x) piece(x, y, number);
}
"""

# One thread asks for all chunks of its block and hands them on: no other thread touches the ring. Both ways are copies
# of the async proxy, so no proxy fence stands between them (PTX ISA 8.6, "cp.async.bulk").
BULK = """
extern "C" __global__ void __launch_bounds__(32) bulk(const char* x, char* y, int chunks) {
    extern __shared__ __align__(128) char ring[];
    __shared__ __align__(8) unsigned long long arrived[STAGES];
    if (threadIdx.x != 0) return;
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(ring));
    const unsigned barrier = static_cast<unsigned>(__cvta_generic_to_shared(arrived));
    for (int stage = 0; stage < STAGES; ++stage) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier + 8 * stage));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");

    auto ask = [&](int chunk, int stage) {
        if (chunk >= chunks) return;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier + 8 * stage), "r"(CHUNK)
                     : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                place + stage * CHUNK),
            "l"(x + static_cast<long long>(chunk) * CHUNK), "r"(CHUNK), "r"(barrier + 8 * stage)
            : "memory");
    };

    const int apart = gridDim.x;
    for (int stage = 0; stage < STAGES - 1; ++stage) ask(blockIdx.x + stage * apart, stage);
    int stage = 0;
    unsigned parity = 0;
    for (int chunk = blockIdx.x; chunk < chunks; chunk += apart) {
        unsigned done;
        do {
            asm volatile(
                "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                : "=r"(done)
                : "r"(barrier + 8 * stage), "r"(parity)
                : "memory");
        } while (!done);
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                         y + static_cast<long long>(chunk) * CHUNK),
                     "r"(place + stage * CHUNK), "r"(CHUNK)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");  // the store before this one has left its place
        ask(chunk + (STAGES - 1) * apart, stage ? stage - 1 : STAGES - 1);
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
"""
