// Primitives of CUB on a block of 64 threads.
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#define K extern "C" __global__ void

K cub_sum(const int* x, int* y, int n) {
  using Reduce = cub::BlockReduce<int, 64>;
  __shared__ typename Reduce::TempStorage storage;
  int i = blockIdx.x * 64 + threadIdx.x, s = Reduce(storage).Sum(i < n ? x[i] : 0);
  if (threadIdx.x == 0) y[blockIdx.x] = s;
}
K cub_sum_float(const float* x, float* y, int n) {
  using Reduce = cub::BlockReduce<float, 64, cub::BLOCK_REDUCE_RAKING>;
  __shared__ typename Reduce::TempStorage storage;
  int i = blockIdx.x * 64 + threadIdx.x;
  float s = Reduce(storage).Sum(i < n ? x[i] : 0.f);
  if (threadIdx.x == 0) y[blockIdx.x] = s;
}
K cub_scan(const int* x, int* y, int n) {
  using Scan = cub::BlockScan<int, 64>;
  __shared__ typename Scan::TempStorage storage;
  int i = blockIdx.x * 64 + threadIdx.x, v = i < n ? x[i] : 0, all;
  Scan(storage).InclusiveSum(v, v, all);
  if (i < n) y[i] = v ^ all;
}
K cub_sort(const unsigned* x, unsigned* y, int n) {
  using Sort = cub::BlockRadixSort<unsigned, 64, 4>;
  __shared__ typename Sort::TempStorage storage;
  unsigned v[4];
  for (int k = 0; k < 4; ++k) { int i = blockIdx.x * 256 + threadIdx.x * 4 + k; v[k] = i < n ? x[i] : ~0u; }
  Sort(storage).Sort(v);
  for (int k = 0; k < 4; ++k) { int i = blockIdx.x * 256 + threadIdx.x * 4 + k; if (i < n) y[i] = v[k]; }
}
K cub_warp_max(const float* x, float* y, int n) {
  using Reduce = cub::WarpReduce<float>;
  __shared__ typename Reduce::TempStorage storage[2];
  int i = blockIdx.x * 64 + threadIdx.x, w = threadIdx.x / 32;
  float s = Reduce(storage[w]).Reduce(i < n ? x[i] : -1e9f, [](float a, float b) { return a > b ? a : b; });
  if (threadIdx.x % 32 == 0) y[blockIdx.x * 2 + w] = s;
}
