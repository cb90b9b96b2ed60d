// The seam of many tokens: groups of SLICES blocks, a block a slice of the width, whose part of W it keeps on chip.
//
// One warp a chunk streams tiles of 16 tokens, round after round. It
//   has the next tile copied into shared memory while it computes this one (a load into registers would need a line of the
//   first-level cache while under way, of which the shared memory leaves next to none);
//   leaves its sums of the tile in shared memory;
//   sends its share of the sums over the slice, of the tile before, to the other blocks;
//   writes the normed columns of the tile DELAY before, whose root mean square has come in meanwhile.
// Two more warps take turns in receiving a tile's sums and in finishing the coefficients of one of its tokens.
//
// No place of the mail ring is written again before all have read it: a block sends tile j only once it has received the
// sums of tile j - 2 whole (`mix_done`), so that whoever sends j + RING has seen all blocks send j + 2.
namespace seam {

constexpr int RING = 4;         // tiles whose sums may be on their way between blocks
constexpr int DELAY = 2;        // tiles by which the normed columns lag
constexpr int POLL_REST = 100;  // nanoseconds between two looks at the mail

template <int D> struct ManyShared {
  typedef Shape<D> S;
  uint4 weights[S::CHUNKS][N * 3 * 2][32];  // second and third terms; the leading ones stay in registers
  uint4 tile[S::CHUNKS][2][N + 1][32];      // streams and output of the tile at hand or on its way
  float partial[S::CHUNKS * PARTIAL];
  uint4 kept[DELAY][S::CHUNKS][2][32];      // collapsed columns of the tiles before, packed
  float coef[2][ROWS * COEF];
  float squares[2][S::SLICES][ROWS];
  float mix[2][S::SLICES][WORDS];
  float inverse[4][ROWS];
  float logits[2][8][16];
  unsigned long long partial_full[4], inverse_full[4], mix_done[4], partial_empty, coef_full[2], coef_empty, weights_full;
  u32 epoch;
};
template <int D> struct ManyMail {  // of one group and one place of the ring
  uint2 mix[ROWS][Shape<D>::SLICES][WORDS];
  uint2 squares[Shape<D>::SLICES][ROWS];
};
template <int D> constexpr int many_threads() { return 32 * (Shape<D>::CHUNKS + 2); }

template <int D> __device__ __forceinline__ void many(const Arguments &a, char *shared, int block, int blocks) {
  typedef Shape<D> S;
  static_assert(S::SLICES >= ROWS, "a block finishes one row of a tile at most");
  ManyShared<D> &m = *reinterpret_cast<ManyShared<D> *>(shared);
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, g = lane / 4, t = lane % 4;
  const int rank = block % S::SLICES, group = block / S::SLICES, groups = blocks / S::SLICES;
  const int tiles = (a.tokens + ROWS - 1) / ROWS, last = a.tokens - 1;
  const int rounds = (tiles - group + groups - 1) / groups;  // tiles of this group: group, group + groups, ...
  const u32 zero = hidden_zero();
  Mailbox *box = reinterpret_cast<Mailbox *>(a.workspace);
  ManyMail<D> *mail = reinterpret_cast<ManyMail<D> *>(box + 1) + group * RING;
  const bool worker = warp < S::CHUNKS;
  const u32 column = 2 * (rank * S::CHUNKS * COLS + warp * COLS + 8 * t);  // of a worker's lane, in bytes

  auto fetch = [&](int tile, int r) {  // each lane what it will read itself
    const size_t token = min(tile * ROWS + g + 8 * r, last);
#pragma unroll
    for (int k = 0; k < N; ++k) copy_async(shared_address(&m.tile[warp][r][k][lane]), a.streams + (token * N + k) * (2 * D) + column);
    copy_async(shared_address(&m.tile[warp][r][N][lane]), a.output + token * (2 * D) + column);
  };
  auto fetch_coefficients = [&](int i) {  // a worker's share of those of round i
    constexpr int SHARE = (ROWS * 6 + S::CHUNKS - 1) / S::CHUNKS;
    const int s = warp * SHARE + lane, tile = group + i * groups;
    if (lane < SHARE && s < ROWS * 6)
      copy_async(shared_address(m.coef[i & 1] + (s / 6) * COEF + 4 * (s % 6)), coefficient(a, min(tile * ROWS + s / 6, last), s % 6));
    barrier_arrive_after_copies(shared_address(m.coef_full + (i & 1)));
  };
  auto commit = [] { asm volatile("cp.async.commit_group;" ::: "memory"); };
  if (worker) {
    fetch(group, 0), fetch(group, 1);
    commit();
  }
  u32 arrival = 0, seen = 0;
  if (warp == S::CHUNKS && lane == 0) {
    seen = read_epoch(box);
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      barrier_init(shared_address(m.partial_full + b), S::CHUNKS);
      barrier_init(shared_address(m.inverse_full + b), 1), barrier_init(shared_address(m.mix_done + b), 1);
      if (b < 2) barrier_init(shared_address(m.coef_full + b), S::CHUNKS * 32);
    }
    barrier_init(shared_address(&m.partial_empty), S::CHUNKS);
    barrier_init(shared_address(&m.coef_empty), S::CHUNKS);
    barrier_init(shared_address(&m.weights_full), 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");  // for the bulk copies
  }
  __syncthreads();

  // W goes to its place as it is, 4 * 24 rows of the slice by bulk copies (which have no line of the cache or queue of the
  // load unit to wait for); each warp then takes its chunk into registers, splits it and puts the two small terms back.
  constexpr int ROW_BYTES = S::CHUNKS * COLS * 4;
  if (worker) {
    if (thread == 0) barrier_expect(shared_address(&m.weights_full), N * MIXES * ROW_BYTES);
    constexpr int SHARE = (N * MIXES + S::CHUNKS - 1) / S::CHUNKS;
    const int q = warp * SHARE + lane;  // row of stream q / 24
    if (lane < SHARE && q < N * MIXES)
      copy_bulk(shared_address(m.weights) + q * ROW_BYTES, a.fn + (size_t)(q % MIXES) * (N * D) + q / MIXES * D + rank * S::CHUNKS * COLS,
                ROW_BYTES, shared_address(&m.weights_full));
    fetch_coefficients(0);
  } else if (warp == S::CHUNKS && lane == 0) {
    arrival = count_in(box, seen, zero);
    m.epoch = seen;
  }
  float4 raw[N][3][2];
  if (worker) {
    barrier_wait(shared_address(&m.weights_full), 0);
    const char *from = reinterpret_cast<const char *>(m.weights) + g * ROW_BYTES + warp * (COLS * 4) + t * 32;
#pragma unroll
    for (int k = 0; k < N; ++k)
#pragma unroll
      for (int i = 0; i < 3; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h)  // odd rows the other half first: two rows of a quarter warp then share no bank
          raw[k][i][h] = *reinterpret_cast<const float4 *>(from + (k * MIXES + 8 * i) * ROW_BYTES + 16 * (h ^ (g & 1)));
  }
  __syncthreads();
  const u32 epoch = m.epoch + 1;

  if (worker) {
    const uint4 gain = __ldg(reinterpret_cast<const uint4 *>(a.gain + column));
    auto send = [&](int i) {  // this warp's share of the sums over the slice
      ManyMail<D> &slot = mail[i % RING];
      barrier_wait(shared_address(m.partial_full + (i & 3)), i >> 2 & 1);
      if (i >= 2) barrier_wait(shared_address(m.mix_done + (i - 2 & 3)), (i - 2) >> 2 & 1);
      constexpr int SHARE = (QUARTETS + S::CHUNKS - 1) / S::CHUNKS;
      const int p = warp * SHARE + lane;
      if (lane < SHARE && p < QUARTETS) {
        const float4 sum = slice_sum<S::CHUNKS>(m.partial, p);
        if (p < SQUARES_AT / 4) {
          uint2 *to = &slot.mix[p / (MIXES / 4)][rank][p % (MIXES / 4) * 4];
          publish(to, sum.x, sum.y, epoch + i), publish(to + 2, sum.z, sum.w, epoch + i);
        } else {
          const int row = 2 * (p - SQUARES_AT / 4);
          publish(&slot.squares[rank][row], sum.y, sum.w, epoch + i);
          publish(&slot.mix[row][rank][MIXES], sum.x, 0.f, epoch + i), publish(&slot.mix[row + 1][rank][MIXES], sum.z, 0.f, epoch + i);
        }
      }
      __syncwarp();
      if (lane == 0) barrier_arrive(shared_address(&m.partial_empty));
    };
    auto finish = [&](int i) {
      const int tile = group + i * groups;
      barrier_wait(shared_address(m.inverse_full + (i & 3)), i >> 2 & 1);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int token = tile * ROWS + g + 8 * r;
        const uint4 v = m.kept[i % DELAY][warp][r][lane];
        const u32 read[4] = {v.x, v.y, v.z, v.w};
        if (token <= last) store_normed(a.normed + (size_t)token * (2 * D) + column, read, gain, m.inverse[i & 3][g + 8 * r]);
      }
    };
    uint4 lead[N][3];
#pragma unroll
    for (int k = 0; k < N; ++k)
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        uint4 w[3];
        const float4 p = raw[k][i][0], q = raw[k][i][1];
        split_weights(choose(g & 1, q, p), choose(g & 1, p, q), w);
        lead[k][i] = w[0], m.weights[warp][(k * 3 + i) * 2][lane] = w[1], m.weights[warp][(k * 3 + i) * 2 + 1][lane] = w[2];
      }
#pragma unroll 1
    for (int i = 0; i < rounds; ++i) {
      const int tile = group + i * groups, b = i & 1;
      if (i > 0) barrier_wait(shared_address(&m.coef_empty), (i - 1) & 1);
      if (i + 1 < rounds) fetch_coefficients(i + 1);
      barrier_wait(shared_address(m.coef_full + b), i >> 1 & 1);
      asm volatile("cp.async.wait_group 0;" ::: "memory");
      float sums[SUMS];
      u32 out[2][N][4], read[2][4];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        uint4 x[N];
#pragma unroll
        for (int k = 0; k < N; ++k) x[k] = m.tile[warp][r][k][lane];
        const uint4 y = m.tile[warp][r][N][lane];
        if (i + 1 < rounds) fetch(tile + groups, r);
        write_row(x, y, m.coef[b] + (g + 8 * r) * COEF, out[r], read[r], sums[12 + r], sums[14 + r]);
        const int token = tile * ROWS + g + 8 * r;
        if (token <= last) {
          char *p = a.new_streams + (size_t)token * (N * 2 * D) + column;
#pragma unroll
          for (int k = 0; k < N; ++k) store16(p + k * (2 * D), out[r][k][0], out[r][k][1], out[r][k][2], out[r][k][3]);
        }
      }
      __syncwarp();
      if (lane == 0) barrier_arrive(shared_address(&m.coef_empty));
      commit();
      if (i > 0) send(i - 1);
      const uint4(*w)[32] = m.weights[warp];
      project(out, sums, zero, [&](int k, int s, int i3) { return s == 0 ? lead[k][i3] : w[(k * 3 + i3) * 2 + s - 1][lane]; });
#pragma unroll
      for (int j = 12; j < SUMS; ++j) sums[j] = quad_sum(sums[j]);
      if (i > 0) barrier_wait(shared_address(&m.partial_empty), (i - 1) & 1);
      leave_sums(m.partial + warp * PARTIAL, sums, g, t);
      __syncwarp();
      if (lane == 0) barrier_arrive(shared_address(m.partial_full + (i & 3)));
      if (i >= DELAY) finish(i - DELAY);
#pragma unroll
      for (int r = 0; r < 2; ++r) m.kept[i % DELAY][warp][r][lane] = make_uint4(read[r][0], read[r][1], read[r][2], read[r][3]);
    }
    send(rounds - 1);
#pragma unroll
    for (int d = DELAY; d > 0; --d)
      if (rounds >= d) finish(rounds - d);
    return;
  }

  const int helper = warp - S::CHUNKS;
  const Affine affine = load_affine(a, lane);
  int pending = 0, mine = 0;  // tokens whose combination waits; lane p < pending holds the token of logits[p]
  for (int i = helper; i < rounds; i += 2) {
    const u32 tag = epoch + i;
    ManyMail<D> &slot = mail[i % RING];
    constexpr int SQUARE_PAIRS = S::SLICES * (ROWS / 2), MIX_PAIRS = S::SLICES * (WORDS / 2);
    constexpr int SQUARE_READS = (SQUARE_PAIRS + 31) / 32, MIX_READS = (MIX_PAIRS + 31) / 32;
    const bool finishes = rank < ROWS;
    barrier_wait(shared_address(m.partial_full + (i & 3)), i >> 2 & 1);
    {
      uint4 v[SQUARE_READS];
      auto at = [&](int j) { return lane + 32 * j < SQUARE_PAIRS ? lane + 32 * j : -1; };
      receive<POLL_REST>(&slot.squares[0][0], tag, v, at);
#pragma unroll
      for (int j = 0; j < SQUARE_READS; ++j)
        if (at(j) >= 0) reinterpret_cast<float2 *>(&m.squares[helper][0][0])[at(j)] = make_float2(component(v[j], 0), component(v[j], 2));
    }
    __syncwarp();
    if (lane < ROWS) {
      float total = 0.f;
#pragma unroll
      for (int s = 0; s < S::SLICES; ++s) total = __fadd_rn(total, m.squares[helper][s][lane]);
      m.inverse[i & 3][lane] = inverse_root(total, D, a.norm_eps);
    }
    __syncwarp();
    if (lane == 0) barrier_arrive(shared_address(m.inverse_full + (i & 3)));
    {
      uint4 v[MIX_READS];
      auto at = [&](int j) { return finishes && lane + 32 * j < MIX_PAIRS ? lane + 32 * j : -1; };
      receive<POLL_REST>(&slot.mix[min(rank, ROWS - 1)][0][0], tag, v, at);
#pragma unroll
      for (int j = 0; j < MIX_READS; ++j)
        if (at(j) >= 0) reinterpret_cast<float2 *>(&m.mix[helper][0][0])[at(j)] = make_float2(component(v[j], 0), component(v[j], 2));
    }
    __syncwarp();
    if (lane == 0) barrier_arrive(shared_address(m.mix_done + (i & 3)));
    const int token = (group + i * groups) * ROWS + rank;
    if (finishes && token <= last) {
      float sum = 0.f;
#pragma unroll
      for (int s = 0; s < S::SLICES; ++s) sum = __fadd_rn(sum, m.mix[helper][s][min(lane, MIXES)]);
      const float inverse_rms = inverse_root(__shfl_sync(~0u, sum, MIXES), N * D, a.norm_eps);
      const float z = mix_logit(affine, sum, inverse_rms);
      if (lane < 4) a.new_reading[4 * token + lane] = __fadd_rn(sigmoid(z), a.hc_eps);
      else if (lane < 8) a.new_writing[4 * token + lane - 4] = 2.f * sigmoid(z);
      else if (lane < MIXES) m.logits[helper][pending][lane - 8] = z;
      if (lane == pending) mine = token;
      ++pending;
    }
    __syncwarp();
    if (pending == 8 || i + 2 >= rounds) {  // a lane per waiting token: their Sinkhorn rounds run side by side
      if (lane < pending) {
        float z[16];
#pragma unroll
        for (int j = 0; j < 16; ++j) z[j] = m.logits[helper][lane][j];
        sinkhorn(z, a.iters, a.hc_eps);
        float4 *p = reinterpret_cast<float4 *>(a.new_combination + 16 * (size_t)mine);
#pragma unroll
        for (int j = 0; j < 4; ++j) p[j] = make_float4(z[4 * j], z[4 * j + 1], z[4 * j + 2], z[4 * j + 3]);
      }
      __syncwarp();
      pending = 0;
    }
  }
  if (helper == 0 && lane == 0) move_on(box, arrival, epoch - 1, (tiles + groups - 1) / groups);
}

}  // namespace seam
