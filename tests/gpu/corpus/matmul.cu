// Products of matrices in fp32, fp64, integers and halves, without tensor cores.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#define K extern "C" __global__ void

K naive(const float* A, const float* B, float* C, int m, int n, int k) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= m || c >= n) return;
  float s = 0.f;
  for (int i = 0; i < k; ++i) s += A[r * k + i] * B[i * n + c];
  C[r * n + c] = s;
}

template <class T> __device__ void tile16(const T* A, const T* B, T* C, int m, int n, int k) {
  __shared__ T a[16][16], b[16][17];
  int x = threadIdx.x, y = threadIdx.y, r = blockIdx.y * 16 + y, c = blockIdx.x * 16 + x;
  T s = 0;
  for (int t = 0; t < k; t += 16) {
    a[y][x] = r < m && t + x < k ? A[r * k + t + x] : T(0);
    b[y][x] = t + y < k && c < n ? B[(t + y) * n + c] : T(0);
    __syncthreads();
    for (int i = 0; i < 16; ++i) s += a[y][i] * b[i][x];
    __syncthreads();
  }
  if (r < m && c < n) C[r * n + c] = s;
}
K tiled(const float* A, const float* B, float* C, int m, int n, int k) { tile16<float>(A, B, C, m, n, k); }
K tiled_double(const double* A, const double* B, double* C, int m, int n, int k) { tile16<double>(A, B, C, m, n, k); }
K tiled_int(const int* A, const int* B, int* C, int m, int n, int k) { tile16<int>(A, B, C, m, n, k); }

K registers(const float* A, const float* B, float* C, int m, int n, int k) {  // 32 x 32 tile, 64 threads of 4 x 4
  __shared__ __align__(16) float a[8][32], b[8][32];
  int tid = threadIdx.x, tx = tid % 8, ty = tid / 8, r0 = blockIdx.y * 32, c0 = blockIdx.x * 32;
  float s[4][4] = {};
  for (int t = 0; t < k; t += 8) {
    for (int i = tid; i < 256; i += 64) {
      int q = i / 32, w = i % 32;
      a[q][w] = r0 + w < m && t + q < k ? A[(r0 + w) * k + t + q] : 0.f;
      b[q][w] = t + q < k && c0 + w < n ? B[(t + q) * n + c0 + w] : 0.f;
    }
    __syncthreads();
    for (int q = 0; q < 8; ++q) {
      float4 u = *(float4*)&a[q][ty * 4], v = *(float4*)&b[q][tx * 4];
      float p[4] = {u.x, u.y, u.z, u.w}, w[4] = {v.x, v.y, v.z, v.w};
      for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) s[i][j] = fmaf(p[i], w[j], s[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) {
    int r = r0 + ty * 4 + i, c = c0 + tx * 4 + j;
    if (r < m && c < n) C[r * n + c] = s[i][j];
  }
}

K pipelined(const float* A, const float* B, float* C, int m, int n, int k) {  // cp.async, two buffers
  __shared__ float a[2][16][16], b[2][16][16];
  int x = threadIdx.x, y = threadIdx.y, r = blockIdx.y * 16 + y, c = blockIdx.x * 16 + x;
  auto fetch = [&](int t, int s) {
    bool ia = r < m && t + x < k, ib = t + y < k && c < n;
    __pipeline_memcpy_async(&a[s][y][x], ia ? A + r * k + t + x : A, 4, ia ? 0 : 4);
    __pipeline_memcpy_async(&b[s][y][x], ib ? B + (t + y) * n + c : B, 4, ib ? 0 : 4);
    __pipeline_commit();
  };
  float sum = 0.f;
  fetch(0, 0);
  for (int t = 0, s = 0; t < k; t += 16, s ^= 1) {
    if (t + 16 < k) fetch(t + 16, s ^ 1); else __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += a[s][y][i] * b[s][i][x];
    __syncthreads();
  }
  if (r < m && c < n) C[r * n + c] = sum;
}

K split_k(const float* A, const float* B, float* C, float* part, unsigned* done, int m, int n, int k) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y, z = blockIdx.z, slices = gridDim.z;
  int step = (k + slices - 1) / slices;
  float s = 0.f;
  if (r < m && c < n) {
    for (int i = z * step; i < min(k, z * step + step); ++i) s += A[r * k + i] * B[i * n + c];
    part[(z * m + r) * n + c] = s;
  }
  __threadfence();
  __syncthreads();
  __shared__ bool last;
  if (threadIdx.x == 0 && threadIdx.y == 0) last = atomicAdd(&done[blockIdx.y * gridDim.x + blockIdx.x], 1u) == slices - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (threadIdx.x == 0 && threadIdx.y == 0) done[blockIdx.y * gridDim.x + blockIdx.x] = 0;
  if (r >= m || c >= n) return;
  s = 0.f;
  for (int i = 0; i < slices; ++i) s += __ldcg(&part[(i * m + r) * n + c]);
  C[r * n + c] = s;
}

K transposed(const float* A, const float* B, float* C, int m, int n, int k) {  // A and B with k first
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= m || c >= n) return;
  float s = 0.f, e = 0.f;
  for (int i = 0; i < k; ++i) {  // compensated
    float p = A[i * m + r] * B[c * k + i] - e, t = s + p;
    e = (t - s) - p;
    s = t;
  }
  C[r * n + c] = s;
}

K gemv(const float* A, const float* x, float* y, int m, int k) {  // a warp a row, float4; k a multiple of 4
  int r = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (r >= m) return;
  float s = 0.f;
  for (int i = lane; i < k / 4; i += 32) {
    float4 a = ((const float4*)(A + r * k))[i], b = ((const float4*)x)[i];
    s += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
  }
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  if (lane == 0) y[r] = s;
}

K int8_rows(const int* A, const int* B, int* C, int m, int n, int k4) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= m || c >= n) return;
  int s = 0;
  for (int i = 0; i < k4; ++i) s = __dp4a(A[r * k4 + i], B[c * k4 + i], s);
  C[r * n + c] = s;
}

K half2_columns(const __half2* A, const __half2* B, __half* C, int m, int n, int k2) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= m || c >= n) return;
  __half2 s = __float2half2_rn(0.f);
  for (int i = 0; i < k2; ++i) s = __hfma2(A[r * k2 + i], B[c * k2 + i], s);
  C[r * n + c] = __hadd(__low2half(s), __high2half(s));
}

K bf16_columns(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int m, int n, int k) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= m || c >= n) return;
  __nv_bfloat16 s = __float2bfloat16(0.f);
  for (int i = 0; i < k; ++i) s = __hfma(A[r * k + i], B[c * k + i], s);
  C[r * n + c] = s;
}

K half_in_float(const __half* A, const __half* B, float* C, int m, int n, int k) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= m || c >= n) return;
  float s = 0.f;
  for (int i = 0; i < k; ++i) s = fmaf(__half2float(A[r * k + i]), __half2float(B[c * k + i]), s);
  C[r * n + c] = s;
}
