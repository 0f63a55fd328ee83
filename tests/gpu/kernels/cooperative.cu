// Blocks of a cooperative launch that meet: by the toolkit's barrier, and by a lock that one of them holds.
#include <cooperative_groups.h>

extern "C" __global__ void rotate(const float* start, float* x, int steps) {
  auto grid = cooperative_groups::this_grid();
  int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  x[i] = start[i];
  for (int k = 0; k < steps; ++k) {
    grid.sync();
    float there = x[(i + 33) % n];
    grid.sync();
    x[i] = there + 1.f;
  }
}

extern "C" __global__ void total(const float* start, float* x, int steps) {
  auto grid = cooperative_groups::this_grid();
  __shared__ float part[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < steps; ++k) {
    part[threadIdx.x] = start[i] * (k + 1);
    __syncthreads();
    if (threadIdx.x == 0) {
      float sum = 0.f;
      for (int t = 0; t < blockDim.x; ++t) sum += part[t];
      x[k * gridDim.x + blockIdx.x] = sum;
    }
    grid.sync();
  }
  if (i < steps) {
    float sum = 0.f;
    for (int b = 0; b < gridDim.x; ++b) sum += x[i * gridDim.x + b];
    x[steps * gridDim.x + i] = sum;
  }
}

extern "C" __global__ void locked(const float* start, float* x, unsigned* lock, int steps) {
  int i = blockIdx.x;
  for (int k = 0; k < steps; ++k) {
    if (threadIdx.x == 0) {
      while (atomicExch(lock, 1u)) {}
      __threadfence();
      ((volatile float*)x)[0] = ((volatile float*)x)[0] + start[i];
      __threadfence();
      atomicExch(lock, 0u);
    }
    __syncthreads();
  }
}

extern "C" __global__ void one_missing(const float* start, float* x, int steps) {
  auto grid = cooperative_groups::this_grid();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = start[i];
  if (blockIdx.x == 1) return;
  grid.sync();
  x[i] += steps;
}

extern "C" __global__ void outside_at_last(const float* start, float* x, int steps) {
  auto grid = cooperative_groups::this_grid();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = start[i];
  grid.sync();
  if (blockIdx.x == 2) x[i + 100000] = steps;
}
