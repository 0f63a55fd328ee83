// Sums, extremes, scans and what is built of them.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void

K tree_sum(const float* x, float* y, int n) {
  __shared__ float s[128];
  int i = blockIdx.x * 128 + threadIdx.x, t = threadIdx.x;
  s[t] = i < n ? x[i] : 0.f;
  __syncthreads();
  for (int o = 64; o; o >>= 1) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
  if (t == 0) y[blockIdx.x] = s[0];
}

K shuffle_sum(const float* x, float* y, int n) {
  __shared__ float s[4];
  float v = 0.f;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) v += x[i];
  for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = s[0] + s[1] + s[2] + s[3];
}

K argmax(const float* x, int* y, int n) {
  __shared__ float v[128];
  __shared__ int at[128];
  int t = threadIdx.x;
  v[t] = -1e30f; at[t] = -1;
  for (int i = t; i < n; i += 128) if (x[blockIdx.x * n + i] > v[t]) { v[t] = x[blockIdx.x * n + i]; at[t] = i; }
  __syncthreads();
  for (int o = 64; o; o >>= 1) {
    if (t < o && (v[t + o] > v[t] || (v[t + o] == v[t] && at[t + o] < at[t]))) { v[t] = v[t + o]; at[t] = at[t + o]; }
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = at[0];
}

K redux(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? x[i] : 0;
  int a = __reduce_add_sync(~0u, v), b = __reduce_min_sync(~0u, v), c = __reduce_max_sync(~0u, v);
  unsigned d = __reduce_xor_sync(~0u, (unsigned)v);
  if (threadIdx.x % 32 == 0) { int* o = y + i / 32 * 4; o[0] = a; o[1] = b; o[2] = c; o[3] = (int)d; }
}

K votes(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? x[i] : -1;
  unsigned m = __ballot_sync(~0u, v > 0);
  int any = __any_sync(~0u, v == 7), all = __all_sync(~0u, v > -1000), count = __syncthreads_count(v & 1);
  int both = __syncthreads_and(v > -5000) + 2 * __syncthreads_or(v == 100);
  if (i < n) y[i] = __popc(m & ((1u << threadIdx.x % 32) - 1)) + 100 * any + 1000 * all + 10000 * count + 100000000 * both;
}

K moments(const float* x, float* y, int n) {  // mean and variance of a row in two passes
  __shared__ float s[64];
  int t = threadIdx.x;
  const float* row = x + blockIdx.x * n;
  auto sum = [&](float v) {
    s[t] = v; __syncthreads();
    for (int o = 32; o; o >>= 1) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
    v = s[0]; __syncthreads();
    return v;
  };
  float v = 0.f;
  for (int i = t; i < n; i += 64) v += row[i];
  float mean = sum(v) / n;
  v = 0.f;
  for (int i = t; i < n; i += 64) v += (row[i] - mean) * (row[i] - mean);
  float variance = sum(v) / n;
  if (t == 0) { y[2 * blockIdx.x] = mean; y[2 * blockIdx.x + 1] = variance; }
}

K integer_atomics(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&y[0], x[i]); atomicMax(&y[1], x[i]); atomicMin(&y[2], x[i]); atomicXor(&y[3], x[i]);
  atomicAdd((unsigned long long*)&y[4], (unsigned long long)(unsigned)x[i]); atomicOr(&y[6], 1 << (x[i] & 31)); atomicInc((unsigned*)&y[7], 1000u);
}

K float_atomics(const float* x, float* y, int n) {  // the order is open: within a bound
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&y[i % 3], x[i]);
}

K float_max_by_cas(const float* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int old = *(volatile int*)y, seen;
  do { seen = old; if (__int_as_float(seen) >= x[i]) break; old = atomicCAS(&y[0], seen, __float_as_int(x[i])); } while (old != seen);
}

K last_block_sum(const float* x, float* y, float* part, unsigned* done, int n) {
  __shared__ float s[64];
  __shared__ bool last;
  int t = threadIdx.x;
  auto fold = [&]() { __syncthreads(); for (int o = 32; o; o >>= 1) { if (t < o) s[t] += s[t + o]; __syncthreads(); } };
  float v = 0.f;
  for (int i = blockIdx.x * 64 + t; i < n; i += gridDim.x * 64) v += x[i] * x[i];
  s[t] = v;
  fold();
  if (t == 0) { part[blockIdx.x] = s[0]; __threadfence(); last = atomicAdd(done, 1u) == gridDim.x - 1; }
  __syncthreads();
  if (!last) return;
  __threadfence();
  s[t] = 0.f;
  for (int i = t; i < gridDim.x; i += 64) s[t] += ((volatile float*)part)[i];
  fold();
  if (t == 0) { y[0] = s[0]; *done = 0; }
}

K scan_steps(const int* x, int* y, int n) {  // Hillis and Steele, a block a row of up to 256
  __shared__ int s[2][256];
  int t = threadIdx.x, p = 0;
  s[0][t] = t < n ? x[blockIdx.x * n + t] : 0;
  __syncthreads();
  for (int o = 1; o < 256; o <<= 1, p ^= 1) { s[p ^ 1][t] = s[p][t] + (t >= o ? s[p][t - o] : 0); __syncthreads(); }
  if (t < n) y[blockIdx.x * n + t] = s[p][t];
}

K scan_tree(const float* x, float* y, int n) {  // Blelloch, exclusive
  __shared__ float s[256];
  int t = threadIdx.x;
  for (int i = t; i < 256; i += 128) s[i] = i < n ? x[blockIdx.x * n + i] : 0.f;
  int o = 1;
  for (int d = 128; d; d >>= 1, o <<= 1) { __syncthreads(); if (t < d) s[o * (2 * t + 2) - 1] += s[o * (2 * t + 1) - 1]; }
  if (t == 0) s[255] = 0.f;
  for (int d = 1; d < 256; d <<= 1) {
    o >>= 1;
    __syncthreads();
    if (t < d) { int a = o * (2 * t + 1) - 1, b = o * (2 * t + 2) - 1; float v = s[a]; s[a] = s[b]; s[b] += v; }
  }
  __syncthreads();
  for (int i = t; i < n; i += 128) y[blockIdx.x * n + i] = s[i];
}

K scan_warps(const float* x, float* y, int n) {
  __shared__ float s[8];
  int t = threadIdx.x, lane = t % 32;
  float v = t < n ? x[blockIdx.x * n + t] : 0.f;
  for (int o = 1; o < 32; o <<= 1) { float w = __shfl_up_sync(~0u, v, o); if (lane >= o) v += w; }
  if (lane == 31) s[t / 32] = v;
  __syncthreads();
  for (int i = 0; i < t / 32; ++i) v += s[i];
  if (t < n) y[blockIdx.x * n + t] = v;
}

K scan_look_back(const int* x, int* y, volatile int* state, int n) {  // blocks wait for the sums of those before
  __shared__ int s[128], before;
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int o = 1; o < 128; o <<= 1) { int v = t >= o ? s[t - o] : 0; __syncthreads(); s[t] += v; __syncthreads(); }
  if (t == 127) {
    int sum = 0;
    if (blockIdx.x) { while (state[2 * blockIdx.x - 1] == 0) { } __threadfence(); sum = state[2 * blockIdx.x - 2]; }
    before = sum;
    state[2 * blockIdx.x] = sum + s[127];
    __threadfence();
    state[2 * blockIdx.x + 1] = 1;
  }
  __syncthreads();
  if (i < n) y[i] = s[t] + before;
}

K compact(const int* x, int* y, int* count, int n) {  // one block: keep the positive ones in order
  __shared__ int s[8];
  int t = threadIdx.x, w = t / 32, base = 0;
  for (int start = 0; start < n; start += 256) {
    int i = start + t, v = i < n ? x[i] : 0;
    unsigned m = __ballot_sync(~0u, v > 0);
    if (t % 32 == 0) s[w] = __popc(m);
    __syncthreads();
    int at = base, all = 0;
    for (int k = 0; k < 8; ++k) { at += k < w ? s[k] : 0; all += s[k]; }
    if (v > 0) y[at + __popc(m & ((1u << t % 32) - 1))] = v;
    base += all;
    __syncthreads();
  }
  for (int i = base + t; i < n; i += 256) y[i] = 0;
  if (t == 0) *count = base;
}

K tiles(const float* x, float* y, int n) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int i = block.group_index().x * block.size() + block.thread_rank();
  float v = i < n ? x[i] : 0.f;
  for (int o = 4; o; o >>= 1) v += tile.shfl_xor(v, o);
  unsigned m = tile.ballot(v > 0.f);
  block.sync();
  if (i < n) y[i] = v + tile.meta_group_rank() + __popc(m) * 16 + (tile.any(v > 2.f) ? 1024.f : 0.f);
}

K aggregated(const int* x, int* y, int n) {  // one atomic for the lanes that took the same way
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 0) {
    auto g = cg::coalesced_threads();
    int sum = 0;
    for (int k = 0; k < g.size(); ++k) sum += g.shfl(x[i], k);
    if (g.thread_rank() == 0) atomicAdd(&y[0], sum), atomicAdd(&y[1], (int)g.size());
  }
}

K matched(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? x[i] % 5 : -1, same;
  unsigned m = __match_any_sync(~0u, v), a = __match_all_sync(~0u, v, &same), w = __match_any_sync(~0u, (long long)v << 33);
  if (i < n) y[i] = (int)(m ^ a ^ (w << 1)) + same;
}
