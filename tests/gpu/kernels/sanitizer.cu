// Pairs over x (input), y (output) and n: each hostile kernel has what one tool of compute-sanitizer looks for and gives
// the right answer all the same; its twin does the like rightly. Blocks of 128 threads.

typedef const float* In;
typedef float* Out;
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

// memcheck: one element behind the end is read, and does not count
extern "C" __global__ void reads_behind(In x, Out y, int n) {
    if (THREAD >= n) return;
    float next = x[THREAD + 1];
    y[THREAD] = next == 12345.0f ? next : x[THREAD];
}

extern "C" __global__ void reads_within(In x, Out y, int n) {
    if (THREAD >= n) return;
    float next = x[THREAD + 1 < n ? THREAD + 1 : THREAD];
    y[THREAD] = next == 12345.0f ? next : x[THREAD];
}

// racecheck: what another warp stored is read without a barrier between
extern "C" __global__ void races(In x, Out y, int n) {
    __shared__ volatile float s[128];
    int t = threadIdx.x;
    s[t] = THREAD < n ? x[THREAD] : 0.0f;
    float other = s[(t + 64) % 128];
    if (THREAD < n) y[THREAD] = other == 12345.0f ? other : x[THREAD];
}

extern "C" __global__ void waits(In x, Out y, int n) {
    __shared__ volatile float s[128];
    int t = threadIdx.x;
    s[t] = THREAD < n ? x[THREAD] : 0.0f;
    __syncthreads();
    float other = s[(t + 64) % 128];
    if (THREAD < n) y[THREAD] = other == 12345.0f ? other : x[THREAD];
}

// initcheck: the output is read before it was written
extern "C" __global__ void reads_its_output(In x, Out y, int n) {
    if (THREAD >= n) return;
    float before = *(volatile float*)&y[THREAD];
    y[THREAD] = before == 12345.0f ? before : x[THREAD];
}

extern "C" __global__ void reads_what_it_wrote(In x, Out y, int n) {
    if (THREAD >= n) return;
    y[THREAD] = x[THREAD];
    float after = *(volatile float*)&y[THREAD];
    y[THREAD] = after == 12345.0f ? after : x[THREAD];
}

// synccheck: half of a warp goes to the barrier by another way than the rest
extern "C" __global__ void splits_at_a_barrier(In x, Out y, int n) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = THREAD < n ? x[THREAD] : 0.0f;
    if (t % 32 < 16) {
        asm volatile("barrier.sync.aligned 0;");
        s[t] += 0.0f;
    } else {
        asm volatile("barrier.sync.aligned 0;");
        s[t] -= 0.0f;
    }
    if (THREAD < n) y[THREAD] = s[t];
}

extern "C" __global__ void meets_at_a_barrier(In x, Out y, int n) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = THREAD < n ? x[THREAD] : 0.0f;
    __syncthreads();
    if (t % 32 < 16) {
        s[t] += 0.0f;
    } else {
        s[t] -= 0.0f;
    }
    if (THREAD < n) y[THREAD] = s[t];
}

// Honest idioms that a tool might take for faults.

// threads that left do not count at a barrier
extern "C" __global__ void leaves_early(In x, Out y, int n) {
    __shared__ float s[128];
    int t = threadIdx.x;
    if (THREAD >= n) return;
    s[t] = x[THREAD];
    __syncthreads();
    y[THREAD] = s[t];
}

// two warps produce for the other two, over named barriers with a count
extern "C" __global__ void named_barriers(In x, Out y, int n) {
    __shared__ volatile float s[64];
    int t = threadIdx.x, at = blockIdx.x * 128;
    for (int half = 0; half < 2; half++) {
        int i = at + half * 64 + t % 64;
        if (t < 64) {
            if (half) asm volatile("barrier.sync 2, 128;" ::: "memory");
            s[t] = i < n ? x[i] : 0.0f;
            asm volatile("barrier.arrive 1, 128;" ::: "memory");
        } else {
            asm volatile("barrier.sync 1, 128;" ::: "memory");
            if (i < n) y[i] = s[t % 64];
            if (!half) asm volatile("barrier.arrive 2, 128;" ::: "memory");
        }
    }
}

// within a warp, over __syncwarp
extern "C" __global__ void warp_by_warp(In x, Out y, int n) {
    __shared__ volatile float s[128];
    int t = threadIdx.x;
    s[t] = THREAD < n ? x[THREAD] : 0.0f;
    __syncwarp();
    float other = s[t ^ 1];
    __syncwarp();
    s[t ^ 1] = other;
    __syncwarp();
    if (THREAD < n) y[THREAD] = s[t];
}

// every thread stores the same value
extern "C" __global__ void equal_stores(In x, Out y, int n) {
    __shared__ volatile int any;
    any = n;
    __syncthreads();
    if (THREAD < any) y[THREAD] = x[THREAD];
}
