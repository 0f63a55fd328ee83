// Pairs over x (input), y (output) and n: each gives the right answer, and the first of a pair touches what is not its own.

typedef const float* In;
typedef float* Out;
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void reads_one_behind(In x, Out y, int n) {
    if (THREAD >= n) return;
    float next = x[THREAD + 1];
    y[THREAD] = next == 12345.0f ? next : x[THREAD];
}

extern "C" __global__ void reads_one_before(In x, Out y, int n) {
    if (THREAD >= n) return;
    float last = x[(int)THREAD - 1];
    y[THREAD] = last == 12345.0f ? last : x[THREAD];
}

extern "C" __global__ void reads_its_neighbours(In x, Out y, int n) {
    if (THREAD >= n) return;
    float last = x[THREAD ? THREAD - 1 : 0], next = x[THREAD + 1 < n ? THREAD + 1 : n - 1];
    y[THREAD] = last + next == 12345.0f ? next : x[THREAD];
}

// stores into the input what is there already: no comparison of bytes sees it
extern "C" __global__ void rewrites_its_input(In x, Out y, int n) {
    if (THREAD >= n) return;
    float mine = x[THREAD];
    *(volatile float*)(x + THREAD) = mine;
    y[THREAD] = mine;
}

// hands out what it finds in shared memory
extern "C" __global__ void shows_shared(In x, Out y, int n) {
    __shared__ volatile float s[4096];
    for (int i = threadIdx.x; i < 4096; i += blockDim.x)
        if (blockIdx.x * 4096 + i < n) y[blockIdx.x * 4096 + i] = s[i];
}

// leaves its mark in shared memory
extern "C" __global__ void marks_shared(In x, Out y, int n) {
    __shared__ volatile float s[4096];
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) s[i] = 42.0f;
    __syncthreads();
    for (int i = threadIdx.x; i < 4096; i += blockDim.x)
        if (blockIdx.x * 4096 + i < n) y[blockIdx.x * 4096 + i] = s[i];
}
