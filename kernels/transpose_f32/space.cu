// A space of transposes, y[c, r] = x[r, c].
//
// The parameters are macros, defined above this text for each configuration:
//   TILE     rows and columns of a tile
//   HIGH     rows of 32 threads in a block
//   VEC      values of one access to global memory on both sides: 1, 2 or 4 (where rows and columns allow it)
//   WAY      0: through shared memory, rows padded by one; 1: through shared memory, columns swapped about by xor;
//            2: through registers: a thread transposes a square of VEC x VEC itself
//   ORDER    blocks take tiles 0: along rows of x; 1: along its columns; 2: along diagonals

constexpr int THREADS = 32 * HIGH;

template <int WIDTH>
__device__ __forceinline__ void get(const float* p, float (&v)[WIDTH]) {
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
__device__ __forceinline__ void put(float* p, const float (&v)[WIDTH]) {
    if constexpr (WIDTH == 4) *reinterpret_cast<float4*>(p) = make_float4(v[0], v[1], v[2], v[3]);
    else if constexpr (WIDTH == 2) *reinterpret_cast<float2*>(p) = make_float2(v[0], v[1]);
    else *p = v[0];
}

struct Tile {
    int row0, column0;

    __device__ __forceinline__ Tile(int rows, int cols) {
        const int down = (rows + TILE - 1) / TILE, across = (cols + TILE - 1) / TILE;
        int row = blockIdx.x / across, column = blockIdx.x % across;
        if (ORDER == 1) row = blockIdx.x % down, column = blockIdx.x / down;
        if (ORDER == 2) column = (column + row) % across;
        row0 = row * TILE, column0 = column * TILE;
    }
};

// Where the element of a tile lies in shared memory: rows and columns are both read without two lanes in one bank.
__device__ __forceinline__ int place(int row, int column) {
    return WAY == 1 ? row * TILE + (column ^ (row % 32)) : row * (TILE + 1) + column;
}

// How a block's threads divide a tile: each takes MANY vectors of one column of vectors, BELOW rows apart, FLIGHT at a time.
template <int WIDTH>
struct Shares {
    static constexpr int ACROSS = TILE / WIDTH, BELOW = THREADS / ACROSS, MANY = TILE * ACROSS / THREADS;
    static constexpr bool EVEN = THREADS % ACROSS == 0 && TILE * ACROSS % THREADS == 0;
    static constexpr int FLIGHT = MANY % 8 == 0 && WIDTH < 4 ? 8 : MANY % 4 == 0 ? 4 : MANY % 3 == 0 ? 3 : MANY % 2 == 0 ? 2 : 1;
};

// A tile that lies inside as a whole: all loads of FLIGHT vectors are under way before the first is stored.
template <int WIDTH>
__device__ __forceinline__ void whole_tile(const float* __restrict__ x, float* __restrict__ y, int rows, int cols,
                                           float* tile, Tile at) {
    using S = Shares<WIDTH>;
    const int far = threadIdx.x / S::ACROSS, near = threadIdx.x % S::ACROSS * WIDTH;
    const float* from = x + static_cast<long long>(at.row0 + far) * cols + at.column0 + near;
    float* to = y + static_cast<long long>(at.column0 + far) * rows + at.row0 + near;
#pragma unroll
    for (int first = 0; first < S::MANY; first += S::FLIGHT) {
        float v[S::FLIGHT][WIDTH];
#pragma unroll
        for (int f = 0; f < S::FLIGHT; ++f) get<WIDTH>(from + static_cast<long long>((first + f) * S::BELOW) * cols, v[f]);
#pragma unroll
        for (int f = 0; f < S::FLIGHT; ++f)
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) tile[place(far + (first + f) * S::BELOW, near + e)] = v[f][e];
    }
    __syncthreads();
#pragma unroll
    for (int f = 0; f < S::MANY; ++f) {
        float v[WIDTH];
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) v[e] = tile[place(near + e, far + f * S::BELOW)];
        put<WIDTH>(to + static_cast<long long>(f * S::BELOW) * rows, v);
    }
}

// Rows and columns are both multiples of WIDTH, so that a vector lies inside as a whole or not at all.
template <int WIDTH>
__device__ __forceinline__ void through_shared(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float tile[TILE * (TILE + 1)];
    const Tile at(rows, cols);
    if constexpr (Shares<WIDTH>::EVEN) {
        if (at.row0 + TILE <= rows && at.column0 + TILE <= cols) {
            whole_tile<WIDTH>(x, y, rows, cols, tile, at);
            return;
        }
    }
    for (int i = threadIdx.x; i < TILE * TILE / WIDTH; i += THREADS) {
        const int row = i / (TILE / WIDTH), column = i % (TILE / WIDTH) * WIDTH;
        if (at.row0 + row >= rows || at.column0 + column >= cols) continue;
        float v[WIDTH];
        get<WIDTH>(x + static_cast<long long>(at.row0 + row) * cols + at.column0 + column, v);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) tile[place(row, column + e)] = v[e];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TILE / WIDTH; i += THREADS) {
        const int column = i / (TILE / WIDTH), row = i % (TILE / WIDTH) * WIDTH;
        if (at.row0 + row >= rows || at.column0 + column >= cols) continue;
        float v[WIDTH];
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) v[e] = tile[place(row + e, column)];
        put<WIDTH>(y + static_cast<long long>(at.column0 + column) * rows + at.row0 + row, v);
    }
}

template <int WIDTH>
__device__ __forceinline__ void through_registers(const float* __restrict__ x, float* __restrict__ y, int rows,
                                                  int cols) {
    const Tile at(rows, cols);
    constexpr int SIDE = TILE / WIDTH;
    for (int i = threadIdx.x; i < SIDE * SIDE; i += THREADS) {
        const int row = at.row0 + i % SIDE * WIDTH, column = at.column0 + i / SIDE * WIDTH;
        if (row >= rows || column >= cols) continue;
        float v[WIDTH][WIDTH], turned[WIDTH];
#pragma unroll
        for (int r = 0; r < WIDTH; ++r) get<WIDTH>(x + static_cast<long long>(row + r) * cols + column, v[r]);
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
#pragma unroll
            for (int r = 0; r < WIDTH; ++r) turned[r] = v[r][c];
            put<WIDTH>(y + static_cast<long long>(column + c) * rows + row, turned);
        }
    }
}

template <int WIDTH>
__device__ __forceinline__ void transpose(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    if constexpr (WAY == 2) through_registers<WIDTH>(x, y, rows, cols);
    else through_shared<WIDTH>(x, y, rows, cols);
}

// For rows and columns that are both multiples of VEC.
extern "C" __global__ void __launch_bounds__(THREADS)
transpose_vectors(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    transpose<VEC>(x, y, rows, cols);
}

extern "C" __global__ void __launch_bounds__(THREADS)
transpose_any(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    transpose<1>(x, y, rows, cols);
}
