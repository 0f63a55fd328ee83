// Softmax, norms and losses, a block a row.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define K extern "C" __global__ void
#define INF __int_as_float(0x7f800000)

template <class F> __device__ float fold(float v, F f, float* s) {
  int t = threadIdx.x;
  s[t] = v;
  __syncthreads();
  for (int o = blockDim.x / 2; o; o >>= 1) { if (t < o) s[t] = f(s[t], s[t + o]); __syncthreads(); }
  v = s[0];
  __syncthreads();
  return v;
}
__device__ float plus(float a, float b) { return a + b; }
__device__ float larger(float a, float b) { return fmaxf(a, b); }

K softmax(const float* x, float* y, int n) {
  __shared__ float s[128];
  x += blockIdx.x * n; y += blockIdx.x * n;
  float m = -INF, z = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, x[i]);
  m = fold(m, larger, s);
  for (int i = threadIdx.x; i < n; i += blockDim.x) z += expf(x[i] - m);
  z = fold(z, plus, s);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = expf(x[i] - m) / z;
}

K softmax_online(const float* x, float* y, int n) {  // a warp a row
  int lane = threadIdx.x;
  x += blockIdx.x * n; y += blockIdx.x * n;
  float m = -INF, z = 0.f;
  for (int i = lane; i < n; i += 32) { float w = fmaxf(m, x[i]); z = z * __expf(m - w) + __expf(x[i] - w); m = w; }
  for (int o = 16; o; o >>= 1) {
    float m2 = __shfl_xor_sync(~0u, m, o), z2 = __shfl_xor_sync(~0u, z, o), w = fmaxf(m, m2);
    z = (m > -INF ? z * __expf(m - w) : 0.f) + (m2 > -INF ? z2 * __expf(m2 - w) : 0.f);
    m = w;
  }
  for (int i = lane; i < n; i += 32) y[i] = __expf(x[i] - m) / z;
}

K log_softmax(const float* x, float* y, int n) {
  __shared__ float s[128];
  x += blockIdx.x * n; y += blockIdx.x * n;
  float m = -INF, z = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, x[i]);
  m = fold(m, larger, s);
  for (int i = threadIdx.x; i < n; i += blockDim.x) z += expf(x[i] - m);
  z = logf(fold(z, plus, s));
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] - m - z;
}

K layer_norm(const float* x, const float* w, float* y, int n) {
  __shared__ float s[128];
  x += blockIdx.x * n; y += blockIdx.x * n;
  float a = 0.f, b = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) a += x[i];
  a = fold(a, plus, s) / n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) b += (x[i] - a) * (x[i] - a);
  b = rsqrtf(fold(b, plus, s) / n + 1e-5f);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = (x[i] - a) * b * w[i];
}

K rms_norm(const float* x, const float* w, float* y, int n) {  // with exact root and quotient
  __shared__ float s[128];
  x += blockIdx.x * n; y += blockIdx.x * n;
  float a = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) a += x[i] * x[i];
  a = sqrtf(fold(a, plus, s) / n + 1e-6f);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] / a * w[i];
}

K batch_norm(const float* x, const float* w, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, c = i % 7;
  if (i < n) y[i] = (x[i] - w[c]) / sqrtf(w[7 + c] * w[7 + c] + 1e-5f) * w[14 + c] + w[21 + c];
}

K rms_norm_half(const __half* x, const __half* w, __half* y, int n) {
  __shared__ float s[128];
  x += blockIdx.x * n; y += blockIdx.x * n;
  float a = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) { float v = __half2float(x[i]); a += v * v; }
  a = 1.f / sqrtf(fold(a, plus, s) / n + 1e-6f);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = __hmul(__float2half_rn(__half2float(x[i]) * a), w[i]);
}

K row_l1(const float* x, float* y, int n) {
  __shared__ float s[128];
  float a = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) a += fabsf(x[blockIdx.x * n + i]);
  a = fold(a, plus, s);
  if (threadIdx.x == 0) y[blockIdx.x] = a;
}
