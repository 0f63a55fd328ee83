"""CUDA sources of these tests, and their PTX as NVRTC makes it (no driver is needed)."""

from functools import cache
from pathlib import Path

from kerneltrial.build.nvrtc import received

PRELUDE = "#define INFINITY __int_as_float(0x7f800000)\n#line 1\n"


def include_options() -> list[bytes]:
    """Where the wheels of the CUDA toolkit keep their headers."""
    import nvidia

    roots = [Path(root) / "cu13" / "include" for root in nvidia.__path__]
    folders = [folder for root in roots for folder in (root, root / "cccl") if folder.is_dir()]
    return [f"--include-path={folder}".encode() for folder in folders]


@cache
def ptx_of(source: str) -> str:
    """PTX for sm_80 with line information."""
    from cuda.bindings import nvrtc

    def checked(result: tuple[object, ...]) -> object:
        assert result[0] == nvrtc.nvrtcResult.NVRTC_SUCCESS, result
        return result[1] if len(result) > 1 else None

    program = checked(nvrtc.nvrtcCreateProgram((PRELUDE + source).encode(), b"kernel.cu", 0, [], []))
    options = [b"--gpu-architecture=sm_80", b"--std=c++17", b"--generate-line-info", *include_options()]
    done = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if done[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = received(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        raise AssertionError(log.decode(errors="replace"))
    return received(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX).rstrip(b"\0").decode()


NAIVE = """
extern "C" __global__ void kern(const float* A, const float* B, float* C, int M, int N, int K) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < M && col < N) {
    float acc = 0.f;
    for (int k = 0; k < K; ++k) acc += A[row * K + k] * B[k * N + col];
    C[row * N + col] = acc;
  }
}
"""

TILED = """
#define T 16
extern "C" __global__ void kern(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                                int M, int N, int K) {
  __shared__ float As[T][T], Bs[T][T + 1];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * T + ty, col = blockIdx.x * T + tx;
  float acc = 0.f;
  for (int t = 0; t < (K + T - 1) / T; ++t) {
    int ka = t * T + tx, kb = t * T + ty;
    As[ty][tx] = (row < M && ka < K) ? A[row * K + ka] : 0.f;
    Bs[ty][tx] = (kb < K && col < N) ? B[kb * N + col] : 0.f;
    __syncthreads();
    for (int k = 0; k < T; ++k) acc += As[ty][k] * Bs[k][tx];
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = acc;
}
"""

REGISTERS = """
// 32x32 tile, 8x8 threads of 4x4 each, float4 where rows are aligned, two buffers
constexpr int BM = 32, BN = 32, BK = 8;
extern "C" __global__ void __launch_bounds__(64) kern(const float* __restrict__ A, const float* __restrict__ B,
                                                      float* __restrict__ C, int M, int N, int K) {
  __shared__ __align__(16) float As[2][BK][BM], Bs[2][BK][BN];
  int tid = threadIdx.x, tx = tid % 8, ty = tid / 8, m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
  float acc[4][4] = {};
  auto load = [&](int t, int b) {
    for (int i = tid; i < BM * BK; i += 64) {
      int m = i / BK, k = i % BK;
      As[b][k][m] = (m0 + m < M && t * BK + k < K) ? A[(m0 + m) * K + t * BK + k] : 0.f;
    }
    int k = tid / 8, n = tid % 8 * 4, gk = t * BK + k, gn = n0 + n;
    if (N % 4 == 0 && gk < K && gn + 3 < N) {
      *reinterpret_cast<float4*>(&Bs[b][k][n]) = *reinterpret_cast<const float4*>(&B[gk * N + gn]);
    } else {
      for (int j = 0; j < 4; ++j) Bs[b][k][n + j] = (gk < K && gn + j < N) ? B[gk * N + gn + j] : 0.f;
    }
  };
  int tiles = (K + BK - 1) / BK;
  load(0, 0);
  __syncthreads();
  for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles) load(t + 1, (t + 1) & 1);
    for (int k = 0; k < BK; ++k) {
      float4 a = *reinterpret_cast<const float4*>(&As[t & 1][k][ty * 4]);
      float4 b = *reinterpret_cast<const float4*>(&Bs[t & 1][k][tx * 4]);
      float x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) acc[i][j] = fmaf(x[i], y[j], acc[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      int m = m0 + ty * 4 + i, n = n0 + tx * 4 + j;
      if (m < M && n < N) C[m * N + n] = acc[i][j];
    }
}
"""

SPLIT_K = """
// gridDim.z slices of K; partial sums in scratch; the last block of a tile adds them in order and resets the counter
extern "C" __global__ void kern(const float* A, const float* B, float* C, float* partial, unsigned* counters,
                                int M, int N, int K) {
  int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y, slices = gridDim.z;
  int length = (K + slices - 1) / slices, first = blockIdx.z * length, end = min(K, first + length);
  float acc = 0.f;
  if (row < M && col < N) {
    for (int k = first; k < end; ++k) acc += A[row * K + k] * B[k * N + col];
    partial[(blockIdx.z * M + row) * N + col] = acc;
  }
  __threadfence();
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    unsigned* counter = &counters[blockIdx.y * gridDim.x + blockIdx.x];
    last = atomicAdd(counter, 1u) == slices - 1;
    if (last) *counter = 0u;
  }
  __syncthreads();
  if (last && row < M && col < N) {
    __threadfence();
    float sum = 0.f;
    for (int z = 0; z < slices; ++z) sum += ((volatile float*)partial)[(z * M + row) * N + col];
    C[row * N + col] = sum;
  }
}
"""

SOFTMAX = """
extern "C" __global__ void kern(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  __shared__ float part[32];
  int r = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) / 32;
  float m = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) m = fmaxf(m, x[r * cols + c]);
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (lane == 0) part[warp] = m;
  __syncthreads();
  for (int i = 0; i < warps; ++i) m = fmaxf(m, part[i]);
  __syncthreads();
  float s = 0.f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) s += expf(x[r * cols + c] - m);
  for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
  if (lane == 0) part[warp] = s;
  __syncthreads();
  s = 0.f;
  for (int i = 0; i < warps; ++i) s += part[i];
  for (int c = threadIdx.x; c < cols; c += blockDim.x) y[r * cols + c] = expf(x[r * cols + c] - m) / s;
}
"""
