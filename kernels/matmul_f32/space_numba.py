# A matrix product in Python with knobs: space_numba.yaml says which configurations are tried. Each one is this file with
# the parameters written above it as constants:
#   BM, BN   rows and columns of c that a block computes
#   BK       its step along k
#   TM, TN   sums that a thread keeps in registers: TM rows that follow each other, and TN columns COLUMNS apart
#   STAGES   pairs of tiles: with two, the next step's values travel while this one's are multiplied
#   SPLIT    blocks that share a tile along k; they leave their sums in scratch, and a second launch adds them in order
# kerneltrial compiles the functions that the plan names. What stands for a size is a constant to numba, so that loops
# over it are unrolled and the small arrays lie in registers. Indices are unsigned, as numba has a signed one looked at
# for being negative, and all 64 bits wide: numba makes a float of an unsigned and a signed integer.
from numba import cuda, float32, uint64

COLUMN_THREADS = BN // TN
BLOCK_THREADS = BM // TM * COLUMN_THREADS
A_TILES = STAGES * BM * (BK + 1)  # one more, so that rows which a warp reads at once lie in different banks
B_TILES = STAGES * BK * BN
A_VALUES = BM * BK // BLOCK_THREADS  # that each thread fetches for a step
B_VALUES = BN * BK // BLOCK_THREADS
SUMS = TM * TN

COLUMNS, THREADS, A_LOADS, B_LOADS = map(uint64, (COLUMN_THREADS, BLOCK_THREADS, A_VALUES, B_VALUES))
BM, BN, BK, TM, TN, STAGES = map(uint64, (BM, BN, BK, TM, TN, STAGES))
ONE = uint64(1)
UNROLLED = uint64(8)  # it divides every BK
ZERO = float32(0.0)


@cuda.jit(device=True, inline="always")
def fetch(a, b, row, column, depth, from_a, from_b):
    """One step's values into registers; what lies beyond the matrices is zero."""
    thread = uint64(cuda.threadIdx.x)
    m, n, k = uint64(a.shape[0]), uint64(b.shape[1]), uint64(b.shape[0])
    for i in range(A_LOADS):
        place = thread + i * THREADS
        r, d = row + place // BK, depth + place % BK
        from_a[i] = a[r, d] if r < m and d < k else ZERO
    for i in range(B_LOADS):
        place = thread + i * THREADS
        d, c = depth + place // BN, column + place % BN
        from_b[i] = b[d, c] if d < k and c < n else ZERO


@cuda.jit(device=True, inline="always")
def put(tiles_a, tiles_b, stage, from_a, from_b):
    """One step's values from registers into a pair of tiles."""
    thread = uint64(cuda.threadIdx.x)
    to_a, to_b = stage * BM * (BK + ONE), stage * BK * BN
    for i in range(A_LOADS):
        place = thread + i * THREADS
        tiles_a[to_a + place // BK * (BK + ONE) + place % BK] = from_a[i]
    for i in range(B_LOADS):
        tiles_b[to_b + thread + i * THREADS] = from_b[i]


@cuda.jit(device=True, inline="always")
def multiply(tiles_a, tiles_b, stage, sums):
    """Add one step's products to the thread's sums."""
    thread = uint64(cuda.threadIdx.x)
    at_a = (stage * BM + thread // COLUMNS * TM) * (BK + ONE)
    at_b = stage * BK * BN + thread % COLUMNS
    for _ in range(BK // UNROLLED):
        for step in range(UNROLLED):
            for i in range(TM):
                left = tiles_a[at_a + i * (BK + ONE) + step]
                for j in range(TN):
                    sums[i * TN + j] += left * tiles_b[at_b + step * BN + j * COLUMNS]
        at_a += UNROLLED
        at_b += UNROLLED * BN


@cuda.jit(device=True, inline="always")
def add_up(a, b, first, last, sums):
    """The thread's sums over the steps from `first` to `last`."""
    tiles_a = cuda.shared.array(A_TILES, float32)
    tiles_b = cuda.shared.array(B_TILES, float32)
    from_a = cuda.local.array(A_VALUES, float32)
    from_b = cuda.local.array(B_VALUES, float32)
    row, column = uint64(cuda.blockIdx.y) * BM, uint64(cuda.blockIdx.x) * BN
    for i in range(TM * TN):
        sums[i] = ZERO
    fetch(a, b, row, column, first * BK, from_a, from_b)
    for step in range(first, last):
        stage = (step - first) % STAGES
        put(tiles_a, tiles_b, stage, from_a, from_b)
        cuda.syncthreads()
        if step + ONE < last:
            fetch(a, b, row, column, (step + ONE) * BK, from_a, from_b)
        multiply(tiles_a, tiles_b, stage, sums)
        if STAGES == ONE:
            cuda.syncthreads()  # with two pairs, the one that is written next was last read before the barrier above


@cuda.jit(device=True, inline="always")
def first_element():
    """The row and the column of c that the thread's first sum belongs to."""
    thread = uint64(cuda.threadIdx.x)
    row = uint64(cuda.blockIdx.y) * BM + thread // COLUMNS * TM
    return row, uint64(cuda.blockIdx.x) * BN + thread % COLUMNS


def matmul(a, b, c, m, n, k):
    sums = cuda.local.array(SUMS, float32)
    add_up(a, b, uint64(0), (uint64(k) + BK - ONE) // BK, sums)
    row, column = first_element()
    for i in range(TM):
        for j in range(TN):
            if row + i < uint64(m) and column + j * COLUMNS < uint64(n):
                c[row + i, column + j * COLUMNS] = sums[i * TN + j]


def matmul_part(a, b, parts, m, n, k):
    sums = cuda.local.array(SUMS, float32)
    steps = (uint64(k) + BK - ONE) // BK
    part, splits = uint64(cuda.blockIdx.z), uint64(cuda.gridDim.z)
    add_up(a, b, part * steps // splits, (part + ONE) * steps // splits, sums)
    row, column = first_element()
    for i in range(TM):
        for j in range(TN):
            if row + i < uint64(m) and column + j * COLUMNS < uint64(n):
                parts[(part * uint64(m) + row + i) * uint64(n) + column + j * COLUMNS] = sums[i * TN + j]


def add_parts(parts, c, m, n, splits):
    place, elements = uint64(cuda.grid(1)), uint64(m) * uint64(n)
    if place < elements:
        total = ZERO
        for part in range(uint64(splits)):
            total += parts[part * elements + place]
        c[place // uint64(n), place % uint64(n)] = total
