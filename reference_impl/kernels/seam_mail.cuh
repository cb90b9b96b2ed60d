// How the blocks of a seam meet: barriers and copies within a block, sums sent through memory between blocks.
namespace seam {

constexpr int WORDS = MIXES + 2;  // of a row on its way to the block that finishes it

__device__ __forceinline__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void copy_async(u32 to, const void *from) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void barrier_init(u32 barrier, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_arrive_after_copies(u32 barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy_bulk(u32 to, const void *from, int bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
               "r"(bytes), "r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_wait(u32 barrier, u32 parity) {
  u32 done;
  do {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
  } while (!done);
}
__device__ __forceinline__ void sync_threads(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Blocks exchange sums through memory in words of a float and a tag, written and read whole (accesses of 8 and 16 bytes
// are single, morally strong operations), so a reader needs no flag or fence beside the data: it polls until the tag is
// the one of this launch and round.
__device__ __forceinline__ void publish(uint2 *p, float a, u32 tag) {
  asm volatile("{ .reg .b64 q; mov.b64 q, {%1, %2}; st.relaxed.gpu.global.b64 [%0], q; }" ::"l"(p), "r"(__float_as_uint(a)),
               "r"(tag) : "memory");
}
__device__ __forceinline__ void publish(uint2 *p, float a, float b, u32 tag) {
  asm volatile("{ .reg .b64 l, h; .reg .b128 q; mov.b64 l, {%1, %3}; mov.b64 h, {%2, %3}; mov.b128 q, {l, h}; "
               "st.relaxed.gpu.global.b128 [%0], q; }" ::"l"(p), "r"(__float_as_uint(a)), "r"(__float_as_uint(b)), "r"(tag) : "memory");
}
__device__ __forceinline__ uint4 read_two(const uint2 *p) {
  uint4 v;
  asm volatile("{ .reg .b64 l, h; .reg .b128 q; ld.relaxed.gpu.global.b128 q, [%4]; mov.b128 {l, h}, q; "
               "mov.b64 {%0, %1}, l; mov.b64 {%2, %3}, h; }" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
  return v;
}
// The pairs of words p[2 at(j)], p[2 at(j) + 1] with at(j) >= 0, read until all are there: the missing ones together, and
// at leisure, because polls in full cry would crowd out the loads of other warps.
template <int SLEEP, int COUNT, class At>
__device__ __forceinline__ void receive(const uint2 *p, u32 tag, uint4 (&v)[COUNT], At at) {
#pragma unroll
  for (int j = 0; j < COUNT; ++j) v[j].y = v[j].w = at(j) < 0 ? tag : ~tag;
  for (;;) {
    bool complete = true;
#pragma unroll
    for (int j = 0; j < COUNT; ++j)
      if (v[j].y != tag || v[j].w != tag) v[j] = read_two(p + 2 * at(j));
#pragma unroll
    for (int j = 0; j < COUNT; ++j) complete = complete && v[j].y == tag && v[j].w == tag;
    if (complete) break;
    __nanosleep(SLEEP);
  }
}

// Where blocks leave sums for each other. `epoch` counts tags that earlier launches used up; the last block to have
// read it moves it on for the next launch, so a launch needs no host-side counter and can be replayed in a graph.
struct Mailbox {
  u32 epoch, arrivals;
  u32 pad[30];
};
__device__ __forceinline__ u32 read_epoch(Mailbox *m) {
  u32 e;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(e) : "l"(&m->epoch) : "memory");
  return e;
}
// The count must not run ahead of the read: its addend takes a (zero) part of what was read. A fence would say so too, but
// waits for every copy that the block has under way.
__device__ __forceinline__ u32 count_in(Mailbox *m, u32 epoch, u32 zero) {
  u32 before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(&m->arrivals), "r"(1 + (epoch & zero)) : "memory");
  return before;
}
__device__ __forceinline__ void move_on(Mailbox *m, u32 before, u32 epoch, u32 tags) {
  if (before == gridDim.x - 1) m->arrivals = 0, m->epoch = epoch + tags;
}

}  // namespace seam
