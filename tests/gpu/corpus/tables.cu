// Histograms, sorting, sparse products, graphs: places that depend on the values.
#define K extern "C" __global__ void

K histogram_shared(const unsigned* x, unsigned* y, int n) {
  __shared__ unsigned s[64];
  if (threadIdx.x < 64) s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[x[i] % 64], 1u);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&y[threadIdx.x], s[threadIdx.x]);
}
K histogram_global(const unsigned* x, unsigned* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&y[x[i] >> 26], 1u);
}

K bitonic(const int* x, int* y, int n) {  // up to 256 a block, the rest as the largest
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = t < n ? x[blockIdx.x * n + t] : 0x7FFFFFFF;
  for (int k = 2; k <= 256; k <<= 1)
    for (int j = k >> 1; j; j >>= 1) {
      __syncthreads();
      int o = t ^ j;
      if (o > t && (s[t] > s[o]) == !(t & k)) { int v = s[t]; s[t] = s[o]; s[o] = v; }
    }
  __syncthreads();
  if (t < n) y[blockIdx.x * n + t] = s[t];
}

K odd_even(const float* x, float* y, int n) {  // transposition sort of a row
  extern __shared__ float line[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) line[i] = x[blockIdx.x * n + i];
  for (int p = 0; p < n; ++p) {
    __syncthreads();
    for (int i = 2 * threadIdx.x + (p & 1); i + 1 < n; i += 2 * blockDim.x)
      if (line[i] > line[i + 1]) { float v = line[i]; line[i] = line[i + 1]; line[i + 1] = v; }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = line[i];
}

K radix_pass(const unsigned* x, unsigned* y, int n, int shift) {  // one block, stable, 4 bits
  __shared__ int count[16][128], start[16];
  int t = threadIdx.x, each = (n + 127) / 128, end = min(n, (t + 1) * each);
  for (int d = 0; d < 16; ++d) count[d][t] = 0;
  for (int i = t * each; i < end; ++i) ++count[x[i] >> shift & 15][t];
  __syncthreads();
  if (t < 16) { int s = 0; for (int k = 0; k < 128; ++k) { int c = count[t][k]; count[t][k] = s; s += c; } start[t] = s; }
  __syncthreads();
  if (t == 0) { int s = 0; for (int d = 0; d < 16; ++d) { int c = start[d]; start[d] = s; s += c; } }
  __syncthreads();
  for (int i = t * each; i < end; ++i) { int d = x[i] >> shift & 15; y[start[d] + count[d][t]++] = x[i]; }
}

K csr_rows(const int* start, const int* column, const float* value, const float* x, float* y, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float s = 0.f;
  for (int i = start[r]; i < start[r + 1]; ++i) s += value[i] * x[column[i]];
  y[r] = s;
}
K csr_warps(const int* start, const int* column, const float* value, const float* x, float* y, int rows) {
  int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (r >= rows) return;
  float s = 0.f;
  for (int i = start[r] + lane; i < start[r + 1]; i += 32) s += value[i] * x[column[i]];
  for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
  if (lane == 0) y[r] = s;
}

K edit_distance(const unsigned char* a, const unsigned char* b, int* y, int n) {  // a wavefront over one pair a block
  __shared__ int s[3][65];
  int t = threadIdx.x;
  a += blockIdx.x * n; b += blockIdx.x * n;
  for (int d = 0; d <= 2 * n; ++d) {
    int* now = s[d % 3], *one = s[(d + 2) % 3], *two = s[(d + 1) % 3];
    int i = t, j = d - t;
    if (i <= n && j >= 0 && j <= n)
      now[i] = i == 0 ? j : j == 0 ? i : min(min(one[i - 1], one[i]) + 1, two[i - 1] + (a[i - 1] % 4 != b[j - 1] % 4));
    __syncthreads();
  }
  if (t == n) y[blockIdx.x] = s[2 * n % 3][n];
}

K bodies(const float4* p, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 a = p[i];
  float fx = 0.f, fy = 0.f, fz = 0.f;
  for (int j = 0; j < n; ++j) {
    float4 b = p[j];
    float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z, q = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
    q = b.w * q * q * q;
    fx += dx * q; fy += dy * q; fz += dz * q;
  }
  y[3 * i] = fx; y[3 * i + 1] = fy; y[3 * i + 2] = fz;
}

K relax(const int* from, const int* to, const int* cost, int* y, int edges, int rounds) {  // Bellman and Ford, one block
  for (int r = 0; r < rounds; ++r) {
    for (int e = threadIdx.x; e < edges; e += blockDim.x) { int d = atomicAdd(&y[from[e]], 0); if (d < 1000000) atomicMin(&y[to[e]], d + cost[e]); }
    __syncthreads();
  }
}

K run_lengths(const int* x, int* y, int n) {  // how long the run is that element i ends
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int k = 1;
  while (i - k >= 0 && (x[i - k] & 3) == (x[i] & 3)) ++k;
  y[i] = k;
}
