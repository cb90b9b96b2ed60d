// Split + Sinkhorn of one token in one thread, for the stand-alone kernel and for the seam.
namespace seam {

typedef unsigned int u32;
constexpr int N = 4;       // streams
constexpr int MIXES = 24;  // (2 + N) * N mix numbers: reading (4), writing (4), combination (16, source first)

__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// 1 / x of four values, two reciprocals shared by pairs: the special function unit is what a Sinkhorn step waits for.
__device__ __forceinline__ void reciprocals(const float (&x)[4], float (&y)[4]) {
  const float a = reciprocal(__fmul_rn(x[0], x[1])), b = reciprocal(__fmul_rn(x[2], x[3]));
  y[0] = __fmul_rn(a, x[1]), y[1] = __fmul_rn(a, x[0]), y[2] = __fmul_rn(b, x[3]), y[3] = __fmul_rn(b, x[2]);
}

__device__ __forceinline__ float sigmoid(float z) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(__fadd_rn(1.f, expf(-z))));
  return y;
}

// Softmax over the targets and the Sinkhorn rounds of one 4 x 4 matrix, in place: logits in, combination out.
// M = diag(r) A diag(c) throughout: dividing a row by its sum + eps sets r to 1 / (A c + eps / r), so that a step costs
// 16 multiply-adds and 4 reciprocals. Columns likewise; `row` and `column` hold 1 / r and 1 / c.
__device__ __forceinline__ void sinkhorn(float (&m)[16], int iters, float eps) {
  float r[4], c[4], row[4], column[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float top = fmaxf(fmaxf(m[4 * j], m[4 * j + 1]), fmaxf(m[4 * j + 2], m[4 * j + 3]));
#pragma unroll
    for (int k = 0; k < 4; ++k) m[4 * j + k] = expf(__fsub_rn(m[4 * j + k], top));
    const float inverse = __fdiv_rn(1.f, __fadd_rn(__fadd_rn(m[4 * j], m[4 * j + 1]), __fadd_rn(m[4 * j + 2], m[4 * j + 3])));
#pragma unroll
    for (int k = 0; k < 4; ++k) m[4 * j + k] = __fmaf_rn(m[4 * j + k], inverse, eps);
    r[j] = row[j] = column[j] = 1.f;
  }
  for (int step = 0;;) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float s = __fmul_rn(eps, column[k]);
#pragma unroll
      for (int j = 0; j < 4; ++j) s = __fmaf_rn(m[4 * j + k], r[j], s);
      column[k] = s;
    }
    reciprocals(column, c);
    if (++step >= iters) break;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float s = __fmul_rn(eps, row[j]);
#pragma unroll
      for (int k = 0; k < 4; ++k) s = __fmaf_rn(m[4 * j + k], c[k], s);
      row[j] = s;
    }
    reciprocals(row, r);
  }
#pragma unroll
  for (int j = 0; j < 4; ++j)
#pragma unroll
    for (int k = 0; k < 4; ++k) m[4 * j + k] = __fmul_rn(__fmul_rn(m[4 * j + k], r[j]), c[k]);
}

// All of one token: [24] mix numbers in, weights out.
__device__ __forceinline__ void split(const float *mixes, const float *scale, const float *base, float *reading,
                                      float *writing, float *combination, int tokens, int iters, float eps) {
  const int token = blockIdx.x * blockDim.x + threadIdx.x;
  if (token >= tokens) return;
  const float4 *in = reinterpret_cast<const float4 *>(mixes + (size_t)token * MIXES), *b = reinterpret_cast<const float4 *>(base);
  float4 v[6];
#pragma unroll
  for (int i = 0; i < 6; ++i) v[i] = __ldg(in + i);
  float z[24];
#pragma unroll
  for (int i = 0; i < 6; ++i) {
    const float s = __ldg(scale + (i < 2 ? i : 2));
    const float4 o = __ldg(b + i);
    z[4 * i] = __fmaf_rn(v[i].x, s, o.x), z[4 * i + 1] = __fmaf_rn(v[i].y, s, o.y);
    z[4 * i + 2] = __fmaf_rn(v[i].z, s, o.z), z[4 * i + 3] = __fmaf_rn(v[i].w, s, o.w);
  }
  reinterpret_cast<float4 *>(reading)[token] =
      make_float4(__fadd_rn(sigmoid(z[0]), eps), __fadd_rn(sigmoid(z[1]), eps), __fadd_rn(sigmoid(z[2]), eps), __fadd_rn(sigmoid(z[3]), eps));
  reinterpret_cast<float4 *>(writing)[token] =
      make_float4(2.f * sigmoid(z[4]), 2.f * sigmoid(z[5]), 2.f * sigmoid(z[6]), 2.f * sigmoid(z[7]));
  float m[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) m[i] = z[8 + i];
  sinkhorn(m, iters, eps);
  float4 *p = reinterpret_cast<float4 *>(combination + 16 * (size_t)token);
#pragma unroll
  for (int j = 0; j < 4; ++j) p[j] = make_float4(m[4 * j], m[4 * j + 1], m[4 * j + 2], m[4 * j + 3]);
}

}  // namespace seam
