// out = alpha * x + y: what runs today. Replace it by the kernel that you want to beat.
extern "C" __global__ void scale_add(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out,
                                     int n, float alpha) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaf(alpha, x[i], y[i]);
}
