// A second opinion on the oracle: the same answer by a kernel as plain as can be, in float64. Without one there is no GO.
extern "C" __global__ void reference(const float* x, const float* y, float* out, int n, float alpha) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (float)((double)alpha * (double)x[i] + (double)y[i]);
}
