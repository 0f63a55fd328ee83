// f16 and bf16, single and packed.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
#define K extern "C" __global__ void

K half_axpy(const __half* x, const __half* y, __half* z, int n) { INDEX z[i] = __hfma(__float2half(1.7f), x[i], y[i]); }
K half_arithmetic(const __half* x, const __half* y, __half* z, int n) {
  INDEX
  __half a = x[i], b = y[i], *o = z + 10 * i;
  o[0] = __hadd(a, b); o[1] = __hsub(a, b); o[2] = __hmul(a, b); o[3] = __hadd_sat(a, b); o[4] = __hmul_sat(a, b);
  o[5] = __hmax(a, b); o[6] = __hmin(a, b); o[7] = __hfma_relu(a, b, a); o[8] = __hneg(__habs(a)); o[9] = hfloor(a);
}
K half2_arithmetic(const __half2* x, const __half2* y, __half2* z, int n) {
  INDEX
  __half2 a = x[i], b = y[i], *o = z + 6 * i;
  o[0] = __hadd2(a, b); o[1] = __hmul2(a, b); o[2] = __hfma2(a, b, a); o[3] = __hmax2(a, b); o[4] = __hgt2(a, b); o[5] = __hsub2_sat(a, b);
}
K half_comparisons(const __half* x, const __half* y, int* z, int n) {
  INDEX
  __half a = x[i], b = y[i];
  z[i] = __heq(a, b) + 2 * __hlt(a, b) + 4 * __hge(a, b) + 8 * __hneu(a, b) + 16 * __hisnan(a) + 32 * (int)__hgtu(a, b);
}
K half_conversions(const float* x, const float* y, __half* z, int n) {
  INDEX
  float a = x[i] * 100.f;
  __half* o = z + 8 * i;
  o[0] = __float2half_rn(a); o[1] = __float2half_rz(a); o[2] = __float2half_ru(a); o[3] = __float2half_rd(a * y[i]);
  o[4] = __int2half_rn((int)(a * 50.f)); o[5] = __double2half((double)a * 1e-6); o[6] = __uint2half_ru((unsigned)fabsf(a));
  o[7] = __int2half_rz(__half2int_rd(o[0]));
}
K bf16_arithmetic(const __nv_bfloat16* x, const __nv_bfloat16* y, __nv_bfloat16* z, int n) {
  INDEX
  __nv_bfloat16 a = x[i], b = y[i], *o = z + 8 * i;
  o[0] = __hadd(a, b); o[1] = __hmul(a, b); o[2] = __hfma(a, b, a); o[3] = __hmax(a, b); o[4] = __hmin(a, b);
  o[5] = __hsub(a, b); o[6] = __hneg(a); o[7] = __hfma_relu(a, b, b);
}
K bf16x2_arithmetic(const __nv_bfloat162* x, const __nv_bfloat162* y, __nv_bfloat162* z, int n) {
  INDEX
  __nv_bfloat162 a = x[i], b = y[i], *o = z + 4 * i;
  o[0] = __hadd2(a, b); o[1] = __hmul2(a, b); o[2] = __hfma2(a, b, b); o[3] = __hmax2(a, b);
}
K bf16_conversions(const float* x, const float* y, __nv_bfloat16* z, int n) {
  INDEX
  z[4 * i] = __float2bfloat16_rn(x[i]); z[4 * i + 1] = __float2bfloat16_rz(y[i]);
  __nv_bfloat162 p = __floats2bfloat162_rn(x[i], y[i]);
  z[4 * i + 2] = p.x; z[4 * i + 3] = p.y;
}
K half_division(const __half* x, const __half* y, __half* z, int n) { INDEX z[i] = __hdiv(x[i], y[i]); }
K half_exp(const __half* x, const __half* y, __half* z, int n) { INDEX z[i] = __hadd(hexp(x[i]), hsqrt(__habs(y[i]))); }
K half2_tanh(const __half2* x, const __half2* y, __half2* z, int n) { INDEX z[i] = __hadd2(h2tanh_approx(x[i]), y[i]); }
K half_atomics(const __half2* x, __half2* y, int n) {  // sums of integers: exact in any order
  INDEX atomicAdd(&y[i % 4], x[i]);
}
