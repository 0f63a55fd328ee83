// Images, stencils, transforms: neighbours in two and three dimensions.
#define K extern "C" __global__ void
#define PIXEL int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y; if (r >= h || c >= w) return;
__device__ int clampi(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }

K transpose(const float* x, float* y, int h, int w) {
  __shared__ float s[16][17];
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (r < h && c < w) s[threadIdx.y][threadIdx.x] = x[r * w + c];
  __syncthreads();
  int c2 = blockIdx.y * 16 + threadIdx.x, r2 = blockIdx.x * 16 + threadIdx.y;
  if (r2 < w && c2 < h) y[r2 * h + c2] = s[threadIdx.x][threadIdx.y];
}

K transpose_bytes(const unsigned char* x, unsigned char* y, int h, int w) { PIXEL y[c * h + r] = x[r * w + c]; }

K heat(const float* x, float* y, int h, int w) {
  PIXEL
  float v = x[r * w + c];
  y[r * w + c] = r == 0 || c == 0 || r == h - 1 || c == w - 1 ? v
      : v + 0.1f * (x[(r - 1) * w + c] + x[(r + 1) * w + c] + x[r * w + c - 1] + x[r * w + c + 1] - 4.f * v);
}

K heat_tiled(const float* x, float* y, int h, int w) {  // with a halo in shared memory
  __shared__ float s[18][18];
  int c0 = blockIdx.x * 16 - 1, r0 = blockIdx.y * 16 - 1;
  for (int i = threadIdx.y * 16 + threadIdx.x; i < 324; i += 256)
    s[i / 18][i % 18] = x[clampi(r0 + i / 18, 0, h - 1) * w + clampi(c0 + i % 18, 0, w - 1)];
  __syncthreads();
  int i = threadIdx.y + 1, j = threadIdx.x + 1, r = r0 + i, c = c0 + j;
  if (r < h && c < w) y[r * w + c] = s[i][j] + 0.2f * (s[i - 1][j] + s[i + 1][j] + s[i][j - 1] + s[i][j + 1] - 4.f * s[i][j]);
}

K laplace3d(const float* x, float* y, int d, int h, int w) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
  if (r >= h || c >= w) return;
  auto at = [&](int a, int b, int e) { return x[(clampi(a, 0, d - 1) * h + clampi(b, 0, h - 1)) * w + clampi(e, 0, w - 1)]; };
  y[(z * h + r) * w + c] = at(z - 1, r, c) + at(z + 1, r, c) + at(z, r - 1, c) + at(z, r + 1, c) + at(z, r, c - 1) + at(z, r, c + 1) - 6.f * at(z, r, c);
}

__constant__ float taps[9] = {1.f, 2.f, 1.f, 2.f, 4.f, 2.f, 1.f, 2.f, 1.f};
K conv3x3(const float* x, float* y, int h, int w) {
  PIXEL
  float s = 0.f;
  for (int a = 0; a < 3; ++a) for (int b = 0; b < 3; ++b) {
    int i = r + a - 1, j = c + b - 1;
    if (i >= 0 && j >= 0 && i < h && j < w) s += taps[a * 3 + b] * x[i * w + j];
  }
  y[r * w + c] = s * 0.0625f;
}

K conv_channels(const float* x, const float* f, float* y, int in, int h, int w) {  // 3x3, out channel = blockIdx.z
  PIXEL
  int o = blockIdx.z;
  float s = 0.f;
  for (int q = 0; q < in; ++q) for (int a = 0; a < 3; ++a) for (int b = 0; b < 3; ++b) {
    int i = r + a - 1, j = c + b - 1;
    if (i >= 0 && j >= 0 && i < h && j < w) s = fmaf(f[((o * in + q) * 3 + a) * 3 + b], x[(q * h + i) * w + j], s);
  }
  y[(o * h + r) * w + c] = fmaxf(s, 0.f);
}

K blur_rows(const float* x, float* y, int h, int w) {
  extern __shared__ float line[];
  int r = blockIdx.x;
  for (int i = threadIdx.x; i < w + 4; i += blockDim.x) line[i] = x[r * w + clampi(i - 2, 0, w - 1)];
  __syncthreads();
  for (int i = threadIdx.x; i < w; i += blockDim.x)
    y[r * w + i] = 0.0625f * line[i] + 0.25f * line[i + 1] + 0.375f * line[i + 2] + 0.25f * line[i + 3] + 0.0625f * line[i + 4];
}

K median3x3(const int* x, int* y, int h, int w) {  // by a sorting network
  PIXEL
  int v[9];
  for (int k = 0; k < 9; ++k) v[k] = x[clampi(r + k / 3 - 1, 0, h - 1) * w + clampi(c + k % 3 - 1, 0, w - 1)];
  auto swap = [&](int a, int b) { int lo = min(v[a], v[b]), hi = max(v[a], v[b]); v[a] = lo; v[b] = hi; };
  swap(1, 2); swap(4, 5); swap(7, 8); swap(0, 1); swap(3, 4); swap(6, 7); swap(1, 2); swap(4, 5); swap(7, 8); swap(0, 3);
  swap(5, 8); swap(4, 7); swap(3, 6); swap(1, 4); swap(2, 5); swap(4, 7); swap(4, 2); swap(6, 4); swap(4, 2);
  y[r * w + c] = v[4];
}

K box_bytes(const uchar4* x, uchar4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uchar4 a = x[i], b = x[(i + 1) % n];
  y[i] = make_uchar4((a.x + b.x + 1) / 2, (a.y + b.y + 1) / 2, (a.z + b.z + 1) / 2, (unsigned char)(a.w - b.w));
}

K life(const unsigned char* x, unsigned char* y, int h, int w) {
  PIXEL
  int n = 0;
  for (int a = -1; a <= 1; ++a) for (int b = -1; b <= 1; ++b) if (a || b) n += x[(r + a + h) % h * w + (c + b + w) % w] & 1;
  y[r * w + c] = n == 3 || (n == 2 && (x[r * w + c] & 1));
}

__constant__ float cosine[8] = {1.f, 0.98078528f, 0.92387953f, 0.83146961f, 0.70710678f, 0.55557023f, 0.38268343f, 0.19509032f};
__device__ float cos16(int k) {  // cos(pi k / 16)
  k &= 31;
  if (k > 16) k = 32 - k;
  return k == 8 ? 0.f : k < 8 ? cosine[k] : -cosine[16 - k];
}
K dct8x8(const float* x, float* y, int blocks_a_row) {
  __shared__ float s[8][9], t[8][9];
  int i = threadIdx.y, j = threadIdx.x, w = 8 * blocks_a_row;
  const float* tile = x + blockIdx.y * 8 * w + blockIdx.x * 8;
  s[i][j] = tile[i * w + j];
  __syncthreads();
  float a = 0.f;
  for (int k = 0; k < 8; ++k) a += s[i][k] * cos16((2 * k + 1) * j);
  t[i][j] = a * (j ? 0.5f : 0.35355339f);
  __syncthreads();
  a = 0.f;
  for (int k = 0; k < 8; ++k) a += t[k][j] * cos16((2 * k + 1) * i);
  y[blockIdx.y * 8 * w + blockIdx.x * 8 + i * w + j] = a * (i ? 0.5f : 0.35355339f);
}

K sad_search(const unsigned char* x, const unsigned char* y, int* best, int w, int range) {  // 8x8 blocks, offsets in +-range
  __shared__ int score[256];
  int side = 2 * range + 1, t = threadIdx.x, r0 = range + blockIdx.y * 8, c0 = range + blockIdx.x * 8;
  int mine = 0x7FFFFFFF;
  for (int o = t; o < side * side; o += blockDim.x) {
    int dr = o / side - range, dc = o % side - range;
    unsigned s = 0;
    for (int i = 0; i < 8; ++i) for (int j = 0; j < 8; ++j) s = __sad(x[(r0 + i) * w + c0 + j], y[(r0 + dr + i) * w + c0 + dc + j], s);
    mine = min(mine, (int)(s << 10 | o));
  }
  score[t] = mine;
  __syncthreads();
  for (int o = blockDim.x / 2; o; o >>= 1) { if (t < o) score[t] = min(score[t], score[t + o]); __syncthreads(); }
  if (t == 0) best[blockIdx.y * gridDim.x + blockIdx.x] = score[0];
}

K fft64(const float2* x, float2* y, const float2* root) {  // radix 2, in shared memory; root[k] = exp(-2 pi i k / 64)
  __shared__ float2 s[64];
  int t = threadIdx.x;
  for (int i = t; i < 64; i += 32) s[__brev(i) >> 26] = x[blockIdx.x * 64 + i];
  for (int m = 1; m < 64; m <<= 1) {
    __syncthreads();
    int k = t & (m - 1), a = ((t - k) << 1) + k, b = a + m;
    float2 w = root[k * (32 / m)], u = s[a], v = s[b];
    float2 p = make_float2(v.x * w.x - v.y * w.y, v.x * w.y + v.y * w.x);
    s[a] = make_float2(u.x + p.x, u.y + p.y);
    s[b] = make_float2(u.x - p.x, u.y - p.y);
  }
  __syncthreads();
  for (int i = t; i < 64; i += 32) y[blockIdx.x * 64 + i] = s[i];
}
