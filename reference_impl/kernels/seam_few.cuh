// The seam of few tokens: a block per pair of chunks, so that most of the chip shares the reading of W.
//
// At most four tiles of 16 tokens; a warp per tile and chunk. Four more warps gather the sums of one token over all blocks,
// finish its coefficients and send the root mean square of its collapse back to all of them.
namespace seam {

constexpr int TILES = 4;
constexpr int FEW_WORKERS = 2 * TILES * 32, FEW_GATHERERS = 128, FEW_THREADS = FEW_WORKERS + FEW_GATHERERS;
constexpr int FEW_REST = 20;  // nanoseconds between two looks at the mail

template <int D> struct FewShared {
  typedef Shape<D> S;
  uint4 weights[2 * S::WEIGHTS];
  float partial[TILES][2 * PARTIAL];
  float coef[TILES * ROWS * COEF];
  float mix[S::PAIRS][WORDS];
  u32 epoch;
};
template <int D> struct FewMail {
  uint2 mix[TILES * ROWS][Shape<D>::PAIRS][WORDS];
  uint2 inverse[TILES * ROWS];
};

template <int D> __device__ __forceinline__ void few(const Arguments &a, char *shared, int block) {
  typedef Shape<D> S;
  static_assert(TILES * ROWS <= S::PAIRS, "a block finishes one token at most");
  FewShared<D> &m = *reinterpret_cast<FewShared<D> *>(shared);
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, g = lane / 4, t = lane % 4;
  const int tile = warp / 2, chunk = warp % 2;
  const int last = a.tokens - 1, tiles = (a.tokens + ROWS - 1) / ROWS;
  Mailbox *box = reinterpret_cast<Mailbox *>(a.workspace);
  FewMail<D> &mail = *reinterpret_cast<FewMail<D> *>(box + 1);
  const u32 column = 2 * (block * 2 * COLS + chunk * COLS + 8 * t), zero = hidden_zero();
  const bool worker = thread < FEW_WORKERS && tile < tiles, lower = tile * ROWS + 8 <= last;
  u32 arrival = 0;

  const Affine affine = load_affine(a, lane);
  uint4 x[2][N], y[2], gain;
  if (worker) {
    gain = __ldg(reinterpret_cast<const uint4 *>(a.gain + column));
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (r == 1 && !lower) break;
      const size_t token = min(tile * ROWS + g + 8 * r, last);
#pragma unroll
      for (int k = 0; k < N; ++k) x[r][k] = load_shared_line(a.streams + (token * N + k) * (2 * D) + column);
      y[r] = load_shared_line(a.output + token * (2 * D) + column);
    }
  } else if (thread == FEW_WORKERS) {
    m.epoch = read_epoch(box);
    arrival = count_in(box, m.epoch, zero);
  }
#pragma unroll
  for (int item = thread; item < 2 * N * 96; item += FEW_THREADS)
    stage_weights<D>(a.fn, m.weights + item / (N * 96) * S::WEIGHTS, (block * 2 + item / (N * 96)) * COLS, item % (N * 96));
  for (int s = thread; s < tiles * ROWS * 6; s += FEW_THREADS)
    *reinterpret_cast<float4 *>(m.coef + (s / 6) * COEF + 4 * (s % 6)) = *reinterpret_cast<const float4 *>(coefficient(a, min(s / 6, last), s % 6));
  __syncthreads();
  const u32 tag = m.epoch + 1;

  u32 out[2][N][4], read[2][4];
  if (worker) {
    float sums[SUMS];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (r == 0 || lower) {
        write_row(x[r], y[r], m.coef + (tile * ROWS + g + 8 * r) * COEF, out[r], read[r], sums[12 + r], sums[14 + r]);
      } else {
        sums[12 + r] = sums[14 + r] = 0.f;
#pragma unroll
        for (int k = 0; k < N; ++k)
#pragma unroll
          for (int q = 0; q < 4; ++q) out[r][k][q] = 0;
      }
    }
    const uint4 *w = m.weights + chunk * S::WEIGHTS + lane;
#pragma unroll
    for (int j = 12; j < SUMS; ++j) sums[j] = quad_sum(sums[j]);
    project(out, sums, zero, [&](int k, int s, int i) { return w[(k * 9 + s * 3 + i) * 32]; });
    leave_sums(m.partial[tile] + chunk * PARTIAL, sums, g, t);
  }
  __syncthreads();

  for (int s = thread; s < tiles * QUARTETS; s += FEW_THREADS) {
    const int at_tile = s / QUARTETS, p = s % QUARTETS;
    const bool square = p >= SQUARES_AT / 4;
    const int token = at_tile * ROWS + (square ? 2 * (p - SQUARES_AT / 4) : p / (MIXES / 4));
    if (token > last) continue;
    const float4 sum = slice_sum<2>(m.partial[at_tile], p);
    uint2 *to = &mail.mix[token][block][square ? MIXES : p % (MIXES / 4) * 4];
    publish(to, sum.x, sum.y, tag), publish(to + (square ? S::PAIRS * WORDS : 2), sum.z, sum.w, tag);
  }
  if (worker) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int token = tile * ROWS + g + 8 * r;
      if (token <= last)
#pragma unroll
        for (int k = 0; k < N; ++k)
          store16(a.new_streams + ((size_t)token * N + k) * (2 * D) + column, out[r][k][0], out[r][k][1], out[r][k][2], out[r][k][3]);
    }
  }

  if (worker) {  // the block that finishes a token sends back the root mean square of its collapse
    uint4 v[1];
    const int pair = tile * (ROWS / 2) + lane % 8;
    receive<FEW_REST>(mail.inverse, tag, v, [&](int) { return 2 * pair <= last ? pair : -1; });
    const float even = component(v[0], 0), odd = component(v[0], 2);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int token = tile * ROWS + g + 8 * r;
      const float e = __shfl_sync(~0u, even, g / 2 + 4 * r), o = __shfl_sync(~0u, odd, g / 2 + 4 * r);
      if (token <= last) store_normed(a.normed + (size_t)token * (2 * D) + column, read[r], gain, g % 2 ? o : e);
    }
  }
  if (thread < FEW_WORKERS) return;

  if (block <= last) {
    const int token = block, at = thread - FEW_WORKERS;
    constexpr int DUOS = S::PAIRS * (WORDS / 2), AT_ONCE = (DUOS + FEW_GATHERERS - 1) / FEW_GATHERERS;
    uint4 v[AT_ONCE];
    receive<FEW_REST>(&mail.mix[token][0][0], tag, v, [&](int j) { return at + FEW_GATHERERS * j < DUOS ? at + FEW_GATHERERS * j : -1; });
#pragma unroll
    for (int j = 0; j < AT_ONCE; ++j)
      if (at + FEW_GATHERERS * j < DUOS) reinterpret_cast<float2 *>(&m.mix[0][0])[at + FEW_GATHERERS * j] = make_float2(component(v[j], 0), component(v[j], 2));
    sync_threads(1, FEW_GATHERERS);
    if (at < 32) {
      const int value = min(lane, WORDS - 1);
      float slices[S::SLICES];
#pragma unroll
      for (int s = 0; s < S::SLICES; ++s) {
        slices[s] = m.mix[s * S::PAIRS_PER_SLICE][value];
#pragma unroll
        for (int j = 1; j < S::PAIRS_PER_SLICE; ++j) slices[s] = __fadd_rn(slices[s], m.mix[s * S::PAIRS_PER_SLICE + j][value]);
      }
      float sum = 0.f;
#pragma unroll
      for (int s = 0; s < S::SLICES; ++s) sum = __fadd_rn(sum, slices[s]);
      if (lane == MIXES + 1) {
        publish(&mail.inverse[token], inverse_root(sum, D, a.norm_eps), tag);
        if (token == last && token % 2 == 0) publish(&mail.inverse[token + 1], 0.f, tag);  // words are awaited in pairs
      }
      const float inverse_rms = inverse_root(__shfl_sync(~0u, sum, MIXES), N * D, a.norm_eps);
      const float z = mix_logit(affine, sum, inverse_rms);
      float c[16];
#pragma unroll
      for (int j = 0; j < 16; ++j) c[j] = __shfl_sync(~0u, z, 8 + j);
      if (lane < 4) a.new_reading[4 * token + lane] = __fadd_rn(sigmoid(z), a.hc_eps);
      else if (lane < 8) a.new_writing[4 * token + lane - 4] = 2.f * sigmoid(z);
      sinkhorn(c, a.iters, a.hc_eps);
      float4 *to = reinterpret_cast<float4 *>(a.new_combination + 16 * (size_t)token);
      if (lane == 0) {
#pragma unroll
        for (int j = 0; j < 4; ++j) to[j] = make_float4(c[4 * j], c[4 * j + 1], c[4 * j + 2], c[4 * j + 3]);
      }
    }
  }
  if (thread == FEW_WORKERS) move_on(box, arrival, tag - 1, 1);
}

}  // namespace seam
