// Products on tensor cores: mma.sync by hand and wmma. One warp a block, a 16 x 8 or 16 x 16 tile each.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
#define K extern "C" __global__ void

template <class S> __device__ void by_wmma(const __half* A, const __half* B, S* C, int n, int k) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, S> c;
  wmma::fill_fragment(c, S(0.f));
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(a, A + blockIdx.y * 16 * k + i, k);
    wmma::load_matrix_sync(b, B + i * n + blockIdx.x * 16, n);
    wmma::mma_sync(c, a, b, c);
  }
  wmma::store_matrix_sync(C + blockIdx.y * 16 * n + blockIdx.x * 16, c, n, wmma::mem_row_major);
}
K wmma_float(const __half* A, const __half* B, float* C, int n, int k) { by_wmma<float>(A, B, C, n, k); }
K wmma_half(const __half* A, const __half* B, __half* C, int n, int k) { by_wmma<__half>(A, B, C, n, k); }

K wmma_bf16(const __nv_bfloat16* A, const __nv_bfloat16* B, float* C, int n, int k) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.f);
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(a, A + blockIdx.y * 16 * k + i, k);
    wmma::load_matrix_sync(b, B + blockIdx.x * 16 * k + i, k);
    wmma::mma_sync(c, a, b, c);
  }
  for (int i = 0; i < c.num_elements; ++i) c.x[i] *= 0.5f;
  wmma::store_matrix_sync(C + blockIdx.y * 16 * n + blockIdx.x * 16, c, n, wmma::mem_row_major);
}

// B is given by columns
#define MMA16(NAME, T, SUFFIX)                                                                                       \
  K NAME(const T* A, const T* B, float* C, int n, int k) {                                                           \
    int g = threadIdx.x / 4, t = threadIdx.x % 4, r = blockIdx.y * 16, q = blockIdx.x * 8;                           \
    float c[4] = {};                                                                                                 \
    for (int i = 0; i < k; i += 16) {                                                                                \
      auto word = [&](const T* p, int row, int at) { return *(const unsigned*)(p + row * k + i + at); };             \
      unsigned a0 = word(A, r + g, 2 * t), a1 = word(A, r + g + 8, 2 * t), a2 = word(A, r + g, 2 * t + 8);           \
      unsigned a3 = word(A, r + g + 8, 2 * t + 8), b0 = word(B, q + g, 2 * t), b1 = word(B, q + g, 2 * t + 8);       \
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." SUFFIX ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                   : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1)); \
    }                                                                                                                \
    C[(r + g) * n + q + 2 * t] = c[0]; C[(r + g) * n + q + 2 * t + 1] = c[1];                                        \
    C[(r + g + 8) * n + q + 2 * t] = c[2]; C[(r + g + 8) * n + q + 2 * t + 1] = c[3];                                \
  }
MMA16(mma_half, __half, "f16.f16")
MMA16(mma_bf16, __nv_bfloat16, "bf16.bf16")

K mma_tf32(const float* A, const float* B, float* C, int n, int k) {
  int g = threadIdx.x / 4, t = threadIdx.x % 4, r = blockIdx.y * 16, q = blockIdx.x * 8;
  float c[4] = {};
  for (int i = 0; i < k; i += 8) {
    auto word = [&](const float* p, int row, int at) {
      unsigned w;
      asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(w) : "f"(p[row * k + i + at]));
      return w;
    };
    unsigned a0 = word(A, r + g, t), a1 = word(A, r + g + 8, t), a2 = word(A, r + g, t + 4), a3 = word(A, r + g + 8, t + 4);
    unsigned b0 = word(B, q + g, t), b1 = word(B, q + g, t + 4);
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
  C[(r + g) * n + q + 2 * t] = c[0]; C[(r + g) * n + q + 2 * t + 1] = c[1];
  C[(r + g + 8) * n + q + 2 * t] = c[2]; C[(r + g + 8) * n + q + 2 * t + 1] = c[3];
}

K mma_int8(const signed char* A, const signed char* B, int* C, int n, int k) {
  int g = threadIdx.x / 4, t = threadIdx.x % 4, r = blockIdx.y * 16, q = blockIdx.x * 8;
  int c[4] = {};
  for (int i = 0; i < k; i += 32) {
    auto word = [&](const signed char* p, int row, int at) { return *(const unsigned*)(p + row * k + i + at); };
    unsigned a0 = word(A, r + g, 4 * t), a1 = word(A, r + g + 8, 4 * t), a2 = word(A, r + g, 4 * t + 16);
    unsigned a3 = word(A, r + g + 8, 4 * t + 16), b0 = word(B, q + g, 4 * t), b1 = word(B, q + g, 4 * t + 16);
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
  C[(r + g) * n + q + 2 * t] = c[0]; C[(r + g) * n + q + 2 * t + 1] = c[1];
  C[(r + g + 8) * n + q + 2 * t] = c[2]; C[(r + g + 8) * n + q + 2 * t + 1] = c[3];
}

K by_ldmatrix(const __half* A, const __half* B, float* C, int n, int k) {  // B with k first; f16 rows through shared memory
  __shared__ __align__(16) __half a[16][16], b[16][8];
  int lane = threadIdx.x, g = lane / 4, t = lane % 4, r = blockIdx.y * 16, q = blockIdx.x * 8;
  float c[4] = {};
  for (int i = 0; i < k; i += 16) {
    for (int e = lane; e < 256; e += 32) a[e / 16][e % 16] = A[(r + e / 16) * k + i + e % 16];
    for (int e = lane; e < 128; e += 32) b[e / 8][e % 8] = B[(i + e / 8) * n + q + e % 8];
    __syncwarp();
    unsigned x[4], y[2];
    unsigned pa = (unsigned)__cvta_generic_to_shared(&a[lane % 16][lane / 16 * 8]), pb = (unsigned)__cvta_generic_to_shared(&b[lane % 16][0]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(pb));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    __syncwarp();
  }
  C[(r + g) * n + q + 2 * t] = c[0]; C[(r + g) * n + q + 2 * t + 1] = c[1];
  C[(r + g + 8) * n + q + 2 * t] = c[2]; C[(r + g + 8) * n + q + 2 * t + 1] = c[3];
}
