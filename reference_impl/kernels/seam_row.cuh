// One token's share of a seam: the write of a few columns, their part of the projection on tensor cores, the read.
//
// mma.m16n8k16 wants from lane (g, t) = (lane / 4, lane % 4) columns 2 t, 2 t + 1, 2 t + 8, 2 t + 9 of rows g and g + 8. As
// the order of the columns is free where W follows it, a lane takes 8 neighbouring columns, one 16-byte access, and calls
// them two times four of those.
namespace seam {

constexpr int ROWS = 16;  // tokens of a tile: the M of the tensor core
constexpr int COLS = 32;  // columns of a chunk: 8 for each of the 4 lanes that share a row
constexpr int COEF = 28;  // floats of a token's 24 coefficients in shared memory, padded against bank conflicts
constexpr int SUMS = 16;  // floats a lane accumulates: 12 of the projection, 2 of the streams' squares, 2 of the collapse's
constexpr int PARTIAL = ROWS * (MIXES + 2);  // sums of a chunk: [row][24], then [row][squares of streams, of collapse]
constexpr int SQUARES_AT = ROWS * MIXES;
constexpr int QUARTETS = PARTIAL / 4;  // the unit in which they are summed over the chunks

struct Arguments {
  const char *streams, *output;                       // [T, 4, D], [T, D] bf16
  const float *writing, *combination, *reading;       // [T, 4], [T, 4, 4], [T, 4]
  const float *fn, *scale, *base;                     // [24, 4 D], [3], [24]
  const char *gain;                                   // [D] bf16
  char *new_streams, *normed;                         // [T, 4, D], [T, D] bf16
  float *new_reading, *new_writing, *new_combination; // [T, 4], [T, 4], [T, 4, 4]
  char *workspace;                                    // zeros at first; see Mailbox
  int tokens, iters;
  float hc_eps, norm_eps;
};

// A width is summed as a tree of fixed shape: chunks of 32 columns in pairs, PAIRS_PER_SLICE pairs to a slice, slices.
template <int D> struct Shape {
  static_assert(D % 1024 == 0 && D <= 8192, "the width must be a multiple of 1024, at most 8192");
  static constexpr int PAIRS = D / (2 * COLS);
  static constexpr int PAIRS_PER_SLICE = PAIRS % 5 == 0 ? 5 : 4;
  static constexpr int SLICES = PAIRS / PAIRS_PER_SLICE;
  static constexpr int CHUNKS = 2 * PAIRS_PER_SLICE;  // of a slice
  static constexpr int WEIGHTS = N * 9 * 32;          // uint4 of a chunk's split weights: stream, term, 8 rows, lane
};

__device__ __forceinline__ float low(u32 pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ __forceinline__ u32 pack(float lo, float hi) {
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(hi), "f"(lo));
  return pair;
}
// A second register for x. `zero` is a register that holds 0 unknown to the assembler: a plain move would be merged with
// the first and undone, because a 16-byte store and the tensor core want the same values in different register quads.
__device__ __forceinline__ u32 copied(u32 x, u32 zero) { return x | zero; }
__device__ __forceinline__ u32 hidden_zero() {
  u32 z;
  asm volatile("mov.u32 %0, %%ctaid.z;" : "=r"(z));  // the grid has one dimension
  return z;
}
__device__ __forceinline__ u32 word(const uint4 &v, int q) { return q == 0 ? v.x : q == 1 ? v.y : q == 2 ? v.z : v.w; }
__device__ __forceinline__ float component(const uint4 &v, int i) { return __uint_as_float(word(v, i)); }
__device__ __forceinline__ float part(const float4 &v, int q) { return q == 0 ? v.x : q == 1 ? v.y : q == 2 ? v.z : v.w; }

__device__ __forceinline__ uint4 load_shared_line(const char *p) {  // other warps of the block want it too
  uint4 v;
  asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
__device__ __forceinline__ float4 load_weight(const float *p) {
  float4 v;
  asm volatile("ld.global.nc.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
  return v;
}
__device__ __forceinline__ void store16(char *p, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("st.global.L1::no_allocate.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Three bf16 terms hold all 24 bits of a float weight; x is bf16 already, so the products are exact.
__device__ __forceinline__ void split_pair(float w0, float w1, u32 &a, u32 &b, u32 &c) {
  a = pack(w0, w1);
  float r0 = __fsub_rn(w0, low(a)), r1 = __fsub_rn(w1, high(a));
  b = pack(r0, r1);
  c = pack(__fsub_rn(r0, low(b)), __fsub_rn(r1, high(b)));
}
__device__ __forceinline__ void split_weights(const float4 &u, const float4 &v, uint4 (&w)[3]) {
  split_pair(u.x, u.y, w[0].x, w[1].x, w[2].x);
  split_pair(u.z, u.w, w[0].y, w[1].y, w[2].y);
  split_pair(v.x, v.y, w[0].z, w[1].z, w[2].z);
  split_pair(v.z, v.w, w[0].w, w[1].w, w[2].w);
}

// Eight columns of one token: new streams (rounded once to bf16, and the rounded value feeds everything below), the
// collapse with the carried reading weights, and the two square sums.
__device__ __forceinline__ void write_row(const uint4 (&x)[N], const uint4 &y, const float *coef, u32 (&out)[N][4],
                                          u32 (&read)[4], float &stream_squares, float &read_squares) {
  const float4 *c4 = reinterpret_cast<const float4 *>(coef);
  const float4 u = c4[0], c0 = c4[1], c1 = c4[2], c2 = c4[3], c3 = c4[4], p = c4[5];
  float even = 0.f, odd = 0.f, square = 0.f;
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    const float y0 = low(word(y, q)), y1 = high(word(y, q));
    float r0 = 0.f, r1 = 0.f;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float v0 = __fmul_rn(part(u, k), y0), v1 = __fmul_rn(part(u, k), y1);
      v0 = __fmaf_rn(part(c0, k), low(word(x[0], q)), v0), v1 = __fmaf_rn(part(c0, k), high(word(x[0], q)), v1);
      v0 = __fmaf_rn(part(c1, k), low(word(x[1], q)), v0), v1 = __fmaf_rn(part(c1, k), high(word(x[1], q)), v1);
      v0 = __fmaf_rn(part(c2, k), low(word(x[2], q)), v0), v1 = __fmaf_rn(part(c2, k), high(word(x[2], q)), v1);
      v0 = __fmaf_rn(part(c3, k), low(word(x[3], q)), v0), v1 = __fmaf_rn(part(c3, k), high(word(x[3], q)), v1);
      const u32 o = pack(v0, v1);
      out[k][q] = o;
      v0 = low(o), v1 = high(o);
      even = __fmaf_rn(v0, v0, even), odd = __fmaf_rn(v1, v1, odd);
      r0 = k == 0 ? __fmul_rn(p.x, v0) : __fmaf_rn(part(p, k), v0, r0);
      r1 = k == 0 ? __fmul_rn(p.x, v1) : __fmaf_rn(part(p, k), v1, r1);
    }
    read[q] = pack(r0, r1);
    square = __fmaf_rn(low(read[q]), low(read[q]), square);
    square = __fmaf_rn(high(read[q]), high(read[q]), square);
  }
  stream_squares = __fadd_rn(even, odd);
  read_squares = square;
}

// The chunk's share of the projection: out[row][stream][pair] against the weight fragments `weights(stream, tile, w)`.
// The leading terms and the two small ones have accumulators of their own, started at zero in every chunk.
template <class Weights>
__device__ __forceinline__ void project(const u32 (&out)[2][N][4], float (&sums)[SUMS], u32 zero, Weights weights) {
  float lead[3][4], rest[3][4];
  u32 fragment[N][2][4];  // rows g and g + 8 interleaved, as the tensor core wants them
#pragma unroll
  for (int k = 0; k < N; ++k)
#pragma unroll
    for (int q = 0; q < 4; ++q)
      fragment[k][q / 2][2 * (q % 2)] = copied(out[0][k][q], zero), fragment[k][q / 2][2 * (q % 2) + 1] = copied(out[1][k][q], zero);
#pragma unroll
  for (int i = 0; i < 3; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e) lead[i][e] = rest[i][e] = 0.f;
#pragma unroll
  for (int k = 0; k < N; ++k)
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      uint4 w[3];
#pragma unroll
      for (int s = 0; s < 3; ++s) w[s] = weights(k, s, i);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        mma(lead[i], fragment[k][h], word(w[0], 2 * h), word(w[0], 2 * h + 1));
        mma(rest[i], fragment[k][h], word(w[1], 2 * h), word(w[1], 2 * h + 1));
        mma(rest[i], fragment[k][h], word(w[2], 2 * h), word(w[2], 2 * h + 1));
      }
    }
#pragma unroll
  for (int i = 0; i < 3; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[4 * i + e] = __fadd_rn(lead[i][e], rest[i][e]);
}

__device__ __forceinline__ float quad_sum(float v) {
  v = __fadd_rn(v, __shfl_xor_sync(~0u, v, 1));
  return __fadd_rn(v, __shfl_xor_sync(~0u, v, 2));
}

__device__ __forceinline__ float inverse_root(float sum, int count, float eps) { return rsqrtf(__fmaf_rn(sum, 1.f / count, eps)); }

// Coefficients of a token, laid out writing (4), combination (16, source first), reading (4).
__device__ __forceinline__ const float *coefficient(const Arguments &a, int token, int part) {
  return part == 0 ? a.writing + 4 * token : part == 5 ? a.reading + 4 * token : a.combination + 16 * (size_t)token + 4 * (part - 1);
}

// Mix number `lane` (< 24) of a token, scaled and shifted.
struct Affine {
  float scale, base;
};
__device__ __forceinline__ Affine load_affine(const Arguments &a, int lane) {
  lane = min(lane, MIXES - 1);
  return {__ldg(a.scale + (lane < 4 ? 0 : lane < 8 ? 1 : 2)), __ldg(a.base + lane)};
}
__device__ __forceinline__ float mix_logit(const Affine &f, float sum, float inverse_rms) {
  return __fmaf_rn(__fmul_rn(sum, inverse_rms), f.scale, f.base);
}

// 8 columns of the normed read, from the packed collapse.
__device__ __forceinline__ void store_normed(char *p, const u32 (&read)[4], const uint4 &gain, float inverse_rms) {
  u32 v[4];
#pragma unroll
  for (int q = 0; q < 4; ++q)
    v[q] = pack(__fmul_rn(low(word(gain, q)), __fmul_rn(low(read[q]), inverse_rms)),
                __fmul_rn(high(word(gain, q)), __fmul_rn(high(read[q]), inverse_rms)));
  store16(p, v[0], v[1], v[2], v[3]);
}

// Splits eight weights of row 8 i + l / 4 of a chunk into the fragments of lane l.
template <int D> __device__ __forceinline__ void stage_weights(const float *fn, uint4 *to, int column, int item) {
  const int l = item % 32, i = item / 32 % 3, k = item / 96 % N;
  const float *p = fn + (size_t)(8 * i + l / 4) * (N * D) + k * D + column + 8 * (l % 4);
  const float4 u = load_weight(p), v = load_weight(p + 4);
  uint4 w[3];
  split_weights(u, v, w);
#pragma unroll
  for (int s = 0; s < 3; ++s) to[(k * 9 + s * 3 + i) * 32 + l] = w[s];
}

// A lane's sums of a chunk to their places; the square sums are the same in the four lanes of a row.
__device__ __forceinline__ void leave_sums(float *partial, const float (&sums)[SUMS], int g, int t) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int i = 0; i < 3; ++i)
      *reinterpret_cast<float2 *>(partial + (g + 8 * r) * MIXES + 8 * i + 2 * t) = make_float2(sums[4 * i + 2 * r], sums[4 * i + 2 * r + 1]);
    if (t == 0) *reinterpret_cast<float2 *>(partial + SQUARES_AT + 2 * (g + 8 * r)) = make_float2(sums[12 + r], sums[14 + r]);
  }
}

__device__ __forceinline__ float4 choose(bool first, const float4 &a, const float4 &b) {
  return make_float4(first ? a.x : b.x, first ? a.y : b.y, first ? a.z : b.z, first ? a.w : b.w);
}
__device__ __forceinline__ float4 add(const float4 &a, const float4 &b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z), __fadd_rn(a.w, b.w));
}
// Four sums over CHUNKS chunks, in pairs.
template <int CHUNKS> __device__ __forceinline__ float4 slice_sum(const float *partial, int quartet) {
  const float4 *p = reinterpret_cast<const float4 *>(partial) + quartet;
  float4 sum = add(p[0], p[QUARTETS]);
#pragma unroll
  for (int c = 2; c < CHUNKS; c += 2) sum = add(sum, add(p[c * QUARTETS], p[(c + 1) * QUARTETS]));
  return sum;
}

}  // namespace seam
