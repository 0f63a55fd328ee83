// One thread an element: arithmetic of every width, rounding mode and conversion.
#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
#define K extern "C" __global__ void

K axpy(const float* x, const float* y, float* z, int n, float a) { INDEX z[i] = a * x[i] + y[i]; }

K saturated(const float* x, const float* y, float* z, int n) {
  INDEX z[i] = __saturatef(fmaf(x[i], 0.25f, 0.5f)) - fminf(fmaxf(y[i], -1.f), 1.f);
}

K quotients(const float* x, const float* y, float* z, int n) {
  INDEX
  float a = x[i], b = y[i];
  z[i] = a / b + sqrtf(fabsf(a)) - 1.f / (b * b + 1.f) + fmodf(a, b);
}

K directed(const float* x, const float* y, float* z, int n) {
  INDEX
  float a = x[i], b = y[i], *o = z + 12 * i;
  o[0] = __fadd_rz(a, b); o[1] = __fadd_ru(a, b); o[2] = __fadd_rd(a, b); o[3] = __fmul_rz(a, b);
  o[4] = __fmul_ru(a, b); o[5] = __fmaf_rd(a, b, a); o[6] = __fdiv_rz(a, b); o[7] = __fdiv_ru(a, b);
  o[8] = __fsqrt_rd(fabsf(a)); o[9] = __fsqrt_ru(fabsf(b)); o[10] = __frcp_rz(b); o[11] = __fsub_ru(a, b);
}

K directed_double(const double* x, const double* y, double* z, int n) {
  INDEX
  double a = x[i], b = y[i], *o = z + 8 * i;
  o[0] = __dadd_rz(a, b); o[1] = __dadd_ru(a, b); o[2] = __dmul_rd(a, b); o[3] = __fma_rz(a, b, a);
  o[4] = __ddiv_ru(a, b); o[5] = __dsqrt_rd(fabs(a)); o[6] = __drcp_rz(b); o[7] = a / b + sqrt(fabs(b));
}

K conversions(const float* x, const double* d, long long* z, int n) {
  INDEX
  float a = x[i] * 1000.f;
  double b = d[i] * 1e6;
  long long* o = z + 12 * i;
  o[0] = __float2int_rn(a); o[1] = __float2int_rz(a); o[2] = __float2int_ru(a); o[3] = __float2uint_rd(a);
  o[4] = __float2ll_rn(a); o[5] = (long long)__float2ull_rz(a); o[6] = __double2int_rd(b); o[7] = __double2ll_ru(b);
  o[8] = __double_as_longlong((double)a); o[9] = __float_as_int(__double2float_rz(b));
  o[10] = __float_as_int(__ll2float_ru(__double_as_longlong(b))); o[11] = __double_as_longlong(rint(b) + floor(b) + trunc(b));
}

K bits(const unsigned* x, const unsigned* y, unsigned* z, int n) {
  INDEX
  unsigned a = x[i], b = y[i], *o = z + 12 * i;
  o[0] = __popc(a); o[1] = __clz(a); o[2] = __brev(a); o[3] = __ffs(a); o[4] = __byte_perm(a, b, 0x5147);
  o[5] = __funnelshift_l(a, b, b); o[6] = __funnelshift_rc(a, b, b & 63); o[7] = (a ^ b) & ~(a >> 3) | (b << 7);
  o[8] = __umulhi(a, b); o[9] = __mulhi((int)a, (int)b); o[10] = __usad(a, b, 7u); o[11] = (unsigned)((int)a >> (b & 31));
}

K wide_integers(const unsigned long long* x, const unsigned long long* y, unsigned long long* z, int n) {
  INDEX
  unsigned long long a = x[i], b = y[i] | 1, *o = z + 8 * i;
  o[0] = a * b; o[1] = __umul64hi(a, b); o[2] = a / b; o[3] = a % b; o[4] = (unsigned long long)((long long)a / (long long)b);
  o[5] = (unsigned long long)((long long)a % (long long)(b >> 40)); o[6] = __brevll(a) + __popcll(b); o[7] = __clzll(a >> (b & 63));
}

K small_division(const int* x, const int* y, int* z, int n) {
  INDEX int d = y[i] ? y[i] : 3; z[i] = x[i] / d + x[i] % d * 5 + x[i] / 7 - x[i] % 1000;
}

K product_of_128_bits(const unsigned long long* x, const unsigned long long* y, unsigned long long* z, int n) {
  INDEX
  unsigned __int128 p = (unsigned __int128)x[i] * y[i] + ((unsigned __int128)y[i] << 64) + x[i];
  p -= (unsigned __int128)(y[i] >> 5) * 3;
  z[2 * i] = (unsigned long long)p; z[2 * i + 1] = (unsigned long long)(p >> 64);
}

K bytes_dot(const int* x, const int* y, int* z, int n) {
  INDEX
  z[i] = __dp4a(x[i], y[i], i) + (int)__dp4a((unsigned)x[i], (unsigned)y[i], 5u) + __dp2a_lo(x[i], y[i], 1) - __dp2a_hi(x[i], y[i], 2);
}

K trigonometry(const float* x, const float* y, float* z, int n) { INDEX z[i] = sinf(x[i]) * cosf(y[i]) + tanf(x[i] * 0.1f); }
K logarithms(const float* x, const float* y, float* z, int n) { INDEX z[i] = logf(fabsf(x[i]) + 0.1f) + log1pf(fabsf(y[i])) + atanf(x[i]); }
K exponentials(const float* x, const float* y, float* z, int n) { INDEX z[i] = expf(x[i]) + exp2f(y[i]) + tanhf(x[i]); }
K sigmoid(const float* x, const float* y, float* z, int n) { INDEX z[i] = 1.f / (1.f + expf(-x[i])) * y[i]; }
K gelu(const float* x, const float* y, float* z, int n) { INDEX z[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f)) + y[i]; }
K double_functions(const double* x, const double* y, double* z, int n) { INDEX z[i] = sin(x[i]) + exp(y[i]) * log(fabs(x[i]) + 1.0) + cbrt(y[i]); }
K fast_division(const float* x, const float* y, float* z, int n) { INDEX z[i] = __fdividef(x[i], y[i]) + rsqrtf(fabsf(x[i]) + 1.f); }

K mandelbrot(int* z, int w, int h) {
  int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= w || py >= h) return;
  float cx = -2.2f + 3.f * px / w, cy = -1.3f + 2.6f * py / h, x = 0.f, y = 0.f;
  int k = 0;
  for (; k < 100 && x * x + y * y < 4.f; ++k) { float t = x * x - y * y + cx; y = 2.f * x * y + cy; x = t; }
  z[py * w + px] = k;
}

K philox(unsigned* z, int n, int seed) {
  INDEX
  unsigned c0 = i, c1 = 7, c2 = 11, c3 = 13, k0 = seed, k1 = 0xCAFE;
  for (int r = 0; r < 10; ++r) {
    unsigned h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0, h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0; c1 = l1; c2 = h0 ^ c3 ^ k1; c3 = l0; k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
  }
  z[i] = c0 ^ c1 ^ c2 ^ c3;
}

__device__ __noinline__ float horner(float x, const float* c, int n) {
  float r = 0.f;
  for (int k = n - 1; k >= 0; --k) r = r * x + c[k];
  return r;
}
K called(const float* x, const float* y, float* z, int n) {
  INDEX
  float c[6] = {y[i], 1.f, -0.5f, y[(i + 1) % n], 0.125f, 2.f};
  z[i] = horner(x[i], c, 3 + i % 4);
}

K sorted_in_local(const int* x, const int* y, int* z, int n) {
  INDEX
  int a[9];
  for (int k = 0; k < 9; ++k) a[k] = x[(i + k * 5) % n] ^ y[i];
  for (int k = 1; k < 9; ++k) { int v = a[k], j = k; while (j > 0 && a[j - 1] > v) { a[j] = a[j - 1]; --j; } a[j] = v; }
  z[i] = a[4] + a[i % 9];
}

K gathered(const float* table, const int* index, float* z, int n, int rows, int width) {
  INDEX int r = index[i / width] % rows; r += r < 0 ? rows : 0; z[i] = table[r * width + i % width] * (1 + i % 3);
}

K crc32(const unsigned char* x, unsigned* z, int n, int length) {
  INDEX
  unsigned c = ~0u;
  for (int k = 0; k < length; ++k) { c ^= x[i * length + k]; for (int b = 0; b < 8; ++b) c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0u); }
  z[i] = ~c;
}
