// A space of full motion searches: 16 x 16 blocks, 17 x 17 places.
//
// The parameters are macros, defined above this text for each configuration:
//   PLACES   neighbouring places of a thread: pixels that they share are loaded once
//   SLICES   threads that share these places, each with 16 / SLICES rows of the block
//   WORDS    pixels lie in shared memory 0: as bytes; 1: as 32-bit words; 2: as bytes that are read four at once, whose
//            four absolute differences are one instruction
//   EARLY    1: a thread ends once its places are all worse than the best so far (with one slice)
//   ROLLED   1: the loop over a row's pixels stays a loop; 0: it is written out

constexpr int GROUPS = (17 + PLACES - 1) / PLACES, JOBS = 17 * GROUPS * SLICES, THREADS = (JOBS + 31) / 32 * 32;

#if WORDS == 1
typedef int Pixel;
#else
typedef unsigned char Pixel;
#endif

#if WORDS == 2

// Words of a window's row that a thread reads: its places may begin at any byte of the first.
constexpr int WIDE = (PLACES - 1) / 4 + 5 + ((PLACES - 1) % 4 != 0);

// The same sums: `window` lies on 4 bytes, and the first place begins `from` bytes (0 to 3) behind it.
__device__ __forceinline__ void add_row(unsigned (&sums)[PLACES], const Pixel* block, const Pixel* window, int from) {
    unsigned own[4], seen[WIDE];
#pragma unroll
    for (int w = 0; w < 4; ++w) own[w] = reinterpret_cast<const unsigned*>(block)[w];
#pragma unroll
    for (int w = 0; w < WIDE; ++w) seen[w] = reinterpret_cast<const unsigned*>(window)[w];
#pragma unroll
    for (int w = 0; w < WIDE - 1; ++w) seen[w] = __funnelshift_r(seen[w], seen[w + 1], 8 * from);
#pragma unroll
    for (int p = 0; p < PLACES; ++p)
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const int at = p / 4 + w;
            const unsigned there = p % 4 == 0 ? seen[at] : __funnelshift_r(seen[at], seen[at + 1], p % 4 * 8);
            asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %0;" : "+r"(sums[p]) : "r"(own[w]), "r"(there));
        }
}

#else

// Sums of absolute differences of a row of the block with a row of the window, at PLACES places.
__device__ __forceinline__ void add_row(unsigned (&sums)[PLACES], const Pixel* block, const Pixel* window) {
    int seen[PLACES];  // of the window, from pixel j on
#pragma unroll
    for (int p = 0; p < PLACES - 1; ++p) seen[p] = window[p];
#if ROLLED == 1
#pragma unroll 1
#else
#pragma unroll
#endif
    for (int j = 0; j < 16; ++j) {
        const int pixel = block[j];
        seen[PLACES - 1] = window[j + PLACES - 1];
#pragma unroll
        for (int p = 0; p < PLACES; ++p) sums[p] = __sad(pixel, seen[p], sums[p]);
#pragma unroll
        for (int p = 0; p < PLACES - 1; ++p) seen[p] = seen[p + 1];
    }
}

#endif

extern "C" __global__ void __launch_bounds__(THREADS)
search(const unsigned char* __restrict__ picture, const unsigned char* __restrict__ reference, int* __restrict__ best,
       int* __restrict__ place, int across) {
    // The last group of places may reach beyond the window's 32 columns; what it reads there belongs to no place.
    constexpr int REACH = 16 + GROUPS * PLACES;
    // an odd number of banks from row to row
    constexpr int PITCH = WORDS == 2 ? (REACH + 8) / 8 * 8 + 4 : REACH + (REACH + 1) % 2;
    __shared__ __align__(16) Pixel block[16][16];
    __shared__ __align__(16) Pixel window[32][PITCH];
    __shared__ unsigned least, totals[SLICES > 1 ? 289 : 1];
    const int row = blockIdx.y * 16, column = blockIdx.x * 16, pitch = 16 * across;
    for (int i = threadIdx.x; i < 256; i += THREADS)
        block[i / 16][i % 16] = picture[static_cast<long long>(row + i / 16) * pitch + column + i % 16];
    for (int i = threadIdx.x; i < 32 * PITCH; i += THREADS) {
        const int y = i / PITCH, x = i % PITCH;
        window[y][x] = x < 32 ? reference[static_cast<long long>(row + y) * (pitch + 16) + column + x] : 0;
    }
    if (SLICES > 1)
        for (int i = threadIdx.x; i < 289; i += THREADS) totals[i] = 0;
    if (threadIdx.x == 0) least = 0xffffffffu;
    __syncthreads();
    const int slice = threadIdx.x / (17 * GROUPS), job = threadIdx.x % (17 * GROUPS);
    const int dy = job / GROUPS, dx = job % GROUPS * PLACES;
    if (threadIdx.x < JOBS) {
        unsigned sums[PLACES] = {};
        bool hopeless = false;
        for (int i = 0; i < 16 / SLICES && !hopeless; ++i) {
            const int y = slice * (16 / SLICES) + i;
#if WORDS == 2
            add_row(sums, block[y], window[dy + y] + dx / 4 * 4, dx % 4);
#else
            add_row(sums, block[y], window[dy + y] + dx);
#endif
            if constexpr (EARLY == 1) {
                if (i % 4 != 3) continue;
                const unsigned so_far = atomicMin(&least, 0xffffffffu) >> 9;  // changes nothing, and is no race
                hopeless = true;
#pragma unroll
                for (int p = 0; p < PLACES; ++p) hopeless = hopeless && (sums[p] > so_far || dx + p > 16);
            }
        }
        if (!hopeless) {
#pragma unroll
            for (int p = 0; p < PLACES; ++p) {
                if (dx + p > 16) continue;
                if constexpr (SLICES > 1) atomicAdd(totals + dy * 17 + dx + p, sums[p]);
                else atomicMin(&least, sums[p] << 9 | (dy * 17 + dx + p));
            }
        }
    }
    if constexpr (SLICES > 1) {
        __syncthreads();
        for (int i = threadIdx.x; i < 289; i += THREADS) atomicMin(&least, totals[i] << 9 | i);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        best[blockIdx.y * across + blockIdx.x] = least >> 9;
        place[blockIdx.y * across + blockIdx.x] = least & 511;
    }
}
