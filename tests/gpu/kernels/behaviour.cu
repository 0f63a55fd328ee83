// Small kernels over x (input), y (output) and n, each with one thing to be seen, or caught.

typedef const float* In;
typedef float* Out;
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void copy(In x, Out y, int n) {
    if (THREAD < n) y[THREAD] = x[THREAD];
}

extern "C" __global__ void skips_last(In x, Out y, int n) {
    if (THREAD + 1 < n) y[THREAD] = x[THREAD];
}

extern "C" __global__ void writes_behind(In x, Out y, int n) {
    if (THREAD < n) y[THREAD] = x[THREAD];
    if (THREAD == 0) y[n] = 1.0f;
}

extern "C" __global__ void writes_before(In x, Out y, int n) {
    if (THREAD < n) y[THREAD] = x[THREAD];
    if (THREAD == 0) y[-1] = 1.0f;
}

extern "C" __global__ void changes_input(In x, Out y, int n) {
    if (THREAD < n) y[THREAD] = x[THREAD];
    if (THREAD == 0) const_cast<float*>(x)[n - 1] += 1.0f;
}

extern "C" __global__ void illegal(In x, Out y, int n) {
    if (THREAD == 0) *reinterpret_cast<volatile float*>(16) = x[0];
}

extern "C" __global__ void misaligned(In x, Out y, int n) {
    if (THREAD == 0) *reinterpret_cast<volatile float*>(reinterpret_cast<char*>(y) + 1) = x[0];
}

extern "C" __global__ void traps(In x, Out y, int n) {
    if (THREAD == 0) asm volatile("trap;");
}

extern "C" __global__ void hangs(In x, Out y, int n) {
    volatile float* watched = y;
    while (watched[0] != 42.0f || watched[0] == 42.0f) {
    }
}

extern "C" __global__ void doubles_in_place(Out y, int n) {
    if (THREAD < n) y[THREAD] = 2.0f * y[THREAD];
}

// Adds into y through scratch that must be zero before each call.
extern "C" __global__ void counts_in_scratch(In x, Out y, float* scratch, int n) {
    if (THREAD < n) {
        scratch[THREAD] += 1.0f;
        y[THREAD] = x[THREAD] + scratch[THREAD];
    }
}

// More dynamic shared memory than a static kernel may have: the last float of it travels through.
extern "C" __global__ void large_shared(In x, Out y, int n) {
    extern __shared__ float shared[];
    float* top = shared + 100 * 256 - blockDim.x;
    if (THREAD < n) top[threadIdx.x] = x[THREAD];
    __syncthreads();
    if (THREAD < n) y[THREAD] = top[threadIdx.x];
}

extern "C" __global__ void tells_cluster(In x, Out y, int n) {
    unsigned width, rank;
    asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(width));
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (THREAD < n) y[THREAD] = 100.0f * width + rank;
}

// A barrier over the whole grid, which only a cooperative launch promises to pass; `arrived` restores itself.
extern "C" __global__ void meets(In x, Out y, unsigned* arrived, int n) {
    if (THREAD < n) y[THREAD] = x[THREAD];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1u);
        while (*reinterpret_cast<volatile unsigned*>(arrived) % (2 * gridDim.x) < gridDim.x) {
        }
        if (atomicAdd(arrived, 1u) == 2 * gridDim.x - 1) *arrived = 0;
    }
    __syncthreads();
    if (THREAD < n) y[THREAD] += __ldcg(&y[n - 1 - THREAD]) * 0.0f + 1.0f;
}

extern "C" __global__ void scale(In x, Out y, int n, float by) {
    if (THREAD < n) y[THREAD] = x[THREAD] * by;
}

extern "C" __global__ void works_long(In x, Out y, int n) {
    for (long long start = clock64(); clock64() - start < 20000;) {}
    if (THREAD < n) y[THREAD] = x[THREAD];
}

extern "C" __global__ void finds_its_answer(In x, Out y, int n) {
    if (THREAD < n && y[THREAD] == x[THREAD]) return;
    for (long long start = clock64(); clock64() - start < 20000;) {}
    if (THREAD < n) y[THREAD] = x[THREAD];
}
