// Attention by wgmma on sm_90a, for one row and for thousands: a producer warp brings tiles of 64 positions by bulk
// copies into a ring, two groups of four warps take 64 pairs each. Scores of the next tile are issued before the values
// of this one. fp8 tiles land in a ring of their own; three warps expand them, scales included, into bf16 tiles. The
// arithmetic is that of device/attention_rows.h, to the bit that of attention_portable.cu.
#include "backend/cuda/attention_kernels.h"
#include "backend/cuda/device/attention_feed.h"

namespace steadfast::cuda {
namespace {

__device__ __forceinline__ int consumer_group() { return static_cast<int>(threadIdx.x) / kGroup - 1; }

// This thread's pairs within the piece are the first and the one 8 behind it.
template <class S>
__device__ __forceinline__ int first_pair(const PublishedItem& item) {
  return item.unit * S::kUnitPairs + consumer_group() * kGroupPairs + static_cast<int>(threadIdx.x) % kGroup / 32 * 16 +
         static_cast<int>(threadIdx.x) % 32 / 4;
}
// -1: behind the last.
__device__ __forceinline__ int position_of(const AttentionTask& task, const PublishedItem& item, int pair) {
  return pair < item.pairs ? item.kv.first_position + pair / task.group : -1;
}

template <class S, int kBlocks>
__device__ __forceinline__ void load_queries(const AttentionTask& task, const PublishedItem& item, std::uint32_t to) {
  const int first = item.unit * S::kUnitPairs + consumer_group() * kGroupPairs;
  const std::ptrdiff_t width = static_cast<std::ptrdiff_t>(task.group) * task.kv_heads * task.dim;
  constexpr int kPieces = kBlocks * 8;  // of a pair
  const int c = static_cast<int>(threadIdx.x) % kPieces;
#pragma unroll 4
  for (int r = static_cast<int>(threadIdx.x) % kGroup / kPieces; r < kGroupPairs; r += kGroup / kPieces) {
    const int pair = first + r, row = pair / task.group;
    const std::uint32_t at = to + (c / 8) * (kGroupPairs * 128) + r * 128 + (((c % 8) ^ (r & 7)) << 4);
    if (pair < item.pairs) {
      const int head = item.head * task.group + pair - row * task.group;
      copy_16(at, task.queries + (item.kv.first_row + row) * width + head * task.dim + c * 8);
    } else {
      asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(0) : "memory");
    }
  }
  close_copies();
}

__device__ __forceinline__ void group_barrier() {
  asm volatile("bar.sync %0, %1;" ::"r"(static_cast<int>(threadIdx.x) / kGroup), "n"(kGroup) : "memory");
}

template <int kBlocks>
__device__ __forceinline__ void start_scores(float (&s)[32], std::uint32_t queries, std::uint32_t keys) {
  asm volatile("" : "+r"(queries));  // or 16 descriptors would be kept over the loop
  const std::uint64_t a = rows_descriptor(queries), b = rows_descriptor(keys);
  wgmma_begin();
#pragma unroll
  for (int k = 0; k < 4 * kBlocks; ++k) {
    const int offset = (k / 4 * 8192 + k % 4 * 32) >> 4;
    wgmma_scores(s, a + offset, b + offset, k > 0);
  }
  wgmma_close();
}

template <int kBlocks>
__device__ __forceinline__ void start_values(float (&o)[32 * kBlocks], const std::uint32_t (&p)[16],
                                             std::uint32_t values, bool add) {
  const std::uint64_t b = values_descriptor(values);
  wgmma_begin();
#pragma unroll
  for (int k = 0; k < 4; ++k) wgmma_values(o, p + 4 * k, b + k * 128, k > 0 || add);
  wgmma_close();
}

__device__ __forceinline__ void add_total(float4* at, float4 z) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(z.x), "f"(z.y), "f"(z.z),
               "f"(z.w)
               : "memory");
}

// The total of a unit's rows over its spans so far, in L2: of the block, or of the unit when blocks share it; then a
// flag holds the number of spans that are in.
template <int kBlocks>
struct Total {
  const AttentionTask& task;
  const PublishedItem& item;
  RowTotals rows;
  FoldFactors factors;
  bool ours;   // rows are in registers
  bool first;  // no span is in

  __device__ __forceinline__ int place() const { return item.slot * 2 + consumer_group(); }
  __device__ __forceinline__ float4* values() const {
    return task.totals + static_cast<std::ptrdiff_t>(place()) * (8 * kBlocks * kGroup) + threadIdx.x % kGroup;
  }
  __device__ __forceinline__ float4* state() const {
    return task.states + static_cast<std::ptrdiff_t>(place()) * kGroup + threadIdx.x % kGroup;
  }
  __device__ __forceinline__ std::uint32_t* flag() const { return task.counters + kFlags + place(); }
  // The span before must be in before this one is.
  __device__ __forceinline__ void wait_for(int span) {
    if (ours) return;
    ours = true;
    if (threadIdx.x % kGroup == 0) {
      std::uint32_t done;
      for (;;) {
        asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(done) : "l"(flag()) : "memory");
        if (done == static_cast<std::uint32_t>(span)) break;
        __nanosleep(64);
      }
    }
    group_barrier();
    __threadfence();
    const float4 z = read_total(state());
    rows = {z.x, z.y, z.z, z.w};
  }
  __device__ __forceinline__ void fold_sums(const RowTotals& span_rows, int span) {
    wait_for(span);
    factors = fold_rows(span_rows, first, rows);
  }
  __device__ __forceinline__ void fold_values(const float (&o)[32 * kBlocks]) {
    float4* at = values();
    if (first) {
      first = false;
#pragma unroll
      for (int x = 0; x < 8 * kBlocks; ++x) write_total(at + x * kGroup, four(o, x));
      return;
    }
    if (factors.rescale) {
#pragma unroll 1
      for (int x = 0; x < 8 * kBlocks; ++x)
        write_total(at + x * kGroup, scaled(read_total(at + x * kGroup), factors.d0, factors.d1));
    }
#pragma unroll
    for (int x = 0; x < 8 * kBlocks; ++x) add_total(at + x * kGroup, scaled(four(o, x), factors.f0, factors.f1));
  }
  __device__ __forceinline__ void hand_over(int spans) {
    write_total(state(), {rows.r0, rows.r1, rows.l0, rows.l1});
    __threadfence();
    group_barrier();
    if (threadIdx.x % kGroup == 0)
      asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(flag()), "r"(spans) : "memory");
  }
};

// The last span joins the total and the rows go out.
template <class S, int kBlocks>
__device__ __forceinline__ void write_rows(const AttentionTask& task, const PublishedItem& item,
                                           const float (&o)[32 * kBlocks], const Total<kBlocks>& total) {
  const float inverse0 = __frcp_rn(total.rows.l0), inverse1 = __frcp_rn(total.rows.l1);
  const int pair0 = first_pair<S>(item), pair1 = pair0 + 8;
  const auto at = [&](int pair) {
    const int row = pair / task.group;
    return task.out + (item.kv.first_row + row) * task.out_stride +
           (item.head * task.group + pair - row * task.group) * task.dim + 2 * (threadIdx.x % 4);
  };
  float *to0 = at(pair0), *to1 = at(pair1);
  const float4* from = total.values();
  const bool live0 = pair0 < item.pairs, live1 = pair1 < item.pairs;
  constexpr int kSome = 4;  // read together
#pragma unroll
  for (int first = 0; first < 8 * kBlocks; first += kSome) {
    float4 z[kSome];
#pragma unroll
    for (int i = 0; i < kSome; ++i) z[i] = total.first ? four(o, first + i) : read_total(from + (first + i) * kGroup);
#pragma unroll
    for (int i = 0; i < kSome; ++i) {
      if (!total.first) z[i] = joined(z[i], four(o, first + i), total.factors);
      const int x = 8 * (first + i);
      if (live0) write_pair(to0 + x, finish(z[i].x, inverse0), finish(z[i].y, inverse0));
      if (live1) write_pair(to1 + x, finish(z[i].z, inverse1), finish(z[i].w, inverse1));
    }
  }
}

// A span of a short piece goes to scratch: values, reference, sum.
template <class S, int kBlocks>
__device__ __forceinline__ void write_partial(const AttentionTask& task, const PublishedItem& item,
                                              const float (&o)[32 * kBlocks], const RowSums& sums) {
  const RowTotals span = sums.rows();
  const int t = static_cast<int>(threadIdx.x) % 4, stride = 64 * kBlocks + 4, pair0 = first_pair<S>(item);
  const bool live0 = pair0 < item.pairs, live1 = pair0 + 8 < item.pairs;
  float* to0 = task.partials + static_cast<std::ptrdiff_t>(item.slot + pair0) * stride + 2 * t;
  float* to1 = to0 + 8 * stride;
#pragma unroll
  for (int x = 0; x < 8 * kBlocks; ++x) {
    if (live0) *reinterpret_cast<float2*>(to0 + 8 * x) = {o[4 * x], o[4 * x + 1]};
    if (live1) *reinterpret_cast<float2*>(to1 + 8 * x) = {o[4 * x + 2], o[4 * x + 3]};
  }
  if (t != 0) return;
  if (live0) *reinterpret_cast<float2*>(to0 + 64 * kBlocks) = {span.r0, span.l0};
  if (live1) *reinterpret_cast<float2*>(to1 + 64 * kBlocks) = {span.r1, span.l1};
}

// A consumer group's side of the ring of tiles.
template <class S>
struct Tiles {
  const Memory& memory;
  std::uint32_t taken = 0;
  __device__ __forceinline__ int take() {
    const std::uint32_t slot = taken % S::kSlots, phase = taken / S::kSlots % 2;
    ++taken;
    barrier_wait(shared_address(&memory.barriers->full[slot]), phase);
    return static_cast<int>(slot);
  }
  // The slot taken `before` takes ahead of the last one.
  __device__ __forceinline__ void release(std::uint32_t before) {
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      barrier_arrive(shared_address(&memory.barriers->empty[(taken - 1 - before) % S::kSlots]));
  }
  __device__ __forceinline__ std::uint32_t address(int slot) const {
    return memory.base + S::kRing + slot * S::kTileBytes;
  }
};

// One item of a consumer group; `fetch` starts the next item's queries once this one's are done with.
template <class S, int kBlocks, bool kShort, typename Fetch>
__device__ __forceinline__ void attend(const AttentionTask& task, const PublishedItem& item, std::uint32_t queries,
                                       Tiles<S>& tiles, Fetch fetch) {
  float o[32 * kBlocks], s[32], c0 = 1.0f, c1 = 1.0f;
  std::uint32_t p[16];
  RowSums sums;
  Total<kBlocks> total{task, item, {}, {}, item.first_tile == 0, item.first_tile == 0};
  const int end = item.end_tile;
  const auto weigh = [&](int tile) {
    if (tile >= item.first_masked[consumer_group()])
      mask_scores(s, tile * kTile, position_of(task, item, first_pair<S>(item)),
                  position_of(task, item, first_pair<S>(item) + 8));
    return weigh_scores(s, sums, task.log2_scale, c0, c1);
  };
  sums.start();
  start_scores<kBlocks>(s, queries, tiles.address(tiles.take()));
  wgmma_wait<0>();
  wgmma_sums_ready(s);
  tiles.release(0);
  weigh(item.first_tile);
  pack_weights(s, p);
  bool add = false;
#pragma unroll 1
  for (int tile = item.first_tile; tile + 1 < end; ++tile) {
    start_scores<kBlocks>(s, queries, tiles.address(tiles.take()));
    start_values<kBlocks>(o, p, tiles.address(tiles.take()), add);
    wgmma_wait<1>();
    wgmma_sums_ready(s);
    tiles.release(1);
    const bool ends = !kShort && span_of_tile(tile + 1) != span_of_tile(tile);
    RowTotals done;
    if (ends) {
      done = sums.rows();
      sums.start();
    }
    const bool rises = weigh(tile + 1);
    wgmma_wait<0>();
    wgmma_sums_ready(o);
    tiles.release(0);
    if (ends) {
      total.fold_sums(done, span_of_tile(tile));
      total.fold_values(o);
    } else if (rises) {
#pragma unroll
      for (int x = 0; x < 32 * kBlocks; ++x) o[x] *= x % 4 < 2 ? c0 : c1;
    }
    pack_weights(s, p);
    add = !ends;
  }
  start_values<kBlocks>(o, p, tiles.address(tiles.take()), add);
  fetch();
  if constexpr (!kShort) total.fold_sums(sums.rows(), span_of_tile(end - 1));
  wgmma_wait<0>();
  wgmma_sums_ready(o);
  tiles.release(0);
  if constexpr (kShort) {
    write_partial<S, kBlocks>(task, item, o, sums);
  } else if (item.last) {
    write_rows<S, kBlocks>(task, item, o, total);
    if (task.work.shared_totals != 0 && !total.first) total.hand_over(0);
  } else {
    total.fold_values(o);
    total.hand_over(span_of_tile(end - 1) + 1);
  }
}

template <int kBlocks, bool kFp8, bool kShort>
__device__ __forceinline__ void consume(const AttentionTask& task, const Memory& memory) {
  using S = Shape<kBlocks, kFp8, kShort>;
  const std::uint32_t queries = memory.base + consumer_group() * S::kQueryBytes;
  Queue queue{memory};
  Tiles<S> tiles{memory};
  const auto fetch = [&] {
    group_barrier();  // no warp still reads this item's queries
    const PublishedItem& next = queue.take();
    if (next.end_tile > 0) load_queries<S, kBlocks>(task, next, queries);
  };
  fetch();
  for (;;) {
    const PublishedItem& item = memory.items[(queue.taken - 1) % 2];
    if (item.end_tile == 0) break;
    wait_for_older_copies<0>();
    fence_async_proxy();
    group_barrier();
    if (item.unit * S::kUnitPairs + consumer_group() * kGroupPairs < item.pairs) {
      attend<S, kBlocks, kShort>(task, item, queries, tiles, fetch);
    } else {
      for (int left = 2 * (item.end_tile - item.first_tile); left > 0; --left) {
        tiles.take();
        tiles.release(0);
      }
      fetch();
    }
    queue.release(1);
  }
  wait_for_older_copies<0>();
}

template <int kBlocks, bool kFp8, bool kShort>
__global__ void __launch_bounds__(kThreads, 1) hopper_kernel(const __grid_constant__ AttentionTask task) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using S = Shape<kBlocks, kFp8, kShort>;
  extern __shared__ unsigned char dynamic[];
  __shared__ Barriers barriers;
  __shared__ PublishedItem items[2];
  const Memory memory{(shared_address(dynamic) + 1023) & ~1023u, &barriers, items};
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < S::kSlots; ++i) {
      barrier_init(shared_address(&barriers.full[i]), kFp8 ? S::kConverters : 1);
      barrier_init(shared_address(&barriers.empty[i]), 4 * S::kGroups);
    }
    for (int i = 0; i < S::kRawSlots; ++i) {
      barrier_init(shared_address(&barriers.raw_full[i]), 1);
      barrier_init(shared_address(&barriers.raw_empty[i]), S::kConverters);
    }
    for (int i = 0; i < 2; ++i) {
      barrier_init(shared_address(&barriers.item_full[i]), 1);
      barrier_init(shared_address(&barriers.item_empty[i]), 4 * S::kGroups + S::kConverters);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  begin_next();
  if (warp < 4) {
    lower_registers<kShort ? 56 : 40>();
    if (warp == 0) {
      produce<kBlocks, kFp8, kShort>(task, memory);
    } else if constexpr (kFp8) {
      convert<kBlocks, kShort>(memory, static_cast<int>(threadIdx.x) - 32);
    }
  } else {
    raise_registers<kShort ? 224 : 232>();
    wait_for_earlier();
    if (S::kGroups == 2 || warp < 8) {
      consume<kBlocks, kFp8, kShort>(task, memory);
    } else if constexpr (S::kGroups == 1) {
      convert<kBlocks, kShort>(memory, static_cast<int>(threadIdx.x) - 2 * kGroup + 96);
    }
  }
#else
  __trap();
#endif
}

template <int kBlocks>
void launch_blocks(Recorder& recorder, const AttentionTask& task, bool short_pieces, bool fp8) {
  const dim3 grid(static_cast<unsigned>(recorder.card().multiprocessors));
  const auto launch = [&](auto kernel, std::size_t shared) {
    recorder.launch("attention, wgmma", kernel, {grid, kThreads, shared, 1, true}, task);
  };
  if (fp8 && short_pieces) return launch(hopper_kernel<kBlocks, true, true>, Shape<kBlocks, true, true>::kShared);
  if (fp8) return launch(hopper_kernel<kBlocks, true, false>, Shape<kBlocks, true, false>::kShared);
  if (short_pieces) return launch(hopper_kernel<kBlocks, false, true>, Shape<kBlocks, false, true>::kShared);
  launch(hopper_kernel<kBlocks, false, false>, Shape<kBlocks, false, false>::kShared);
}

}  // namespace

bool has_hopper_attention(int dim) { return dim == 64 || dim == 128 || dim == 256; }

AttentionGrid hopper_grid(const CardTraits& card, bool fp8) {
  return {fp8 ? kGroupPairs : 2 * kGroupPairs, 2 * kGroupPairs, card.multiprocessors};
}

void launch_hopper(Recorder& recorder, const AttentionTask& task, bool short_pieces, bool fp8) {
  if (task.dim == 64) return launch_blocks<1>(recorder, task, short_pieces, fp8);
  if (task.dim == 128) return launch_blocks<2>(recorder, task, short_pieces, fp8);
  CHECK(task.dim == 256, "attention by wgmma: heads of {}", task.dim);
  launch_blocks<4>(recorder, task, short_pieces, fp8);
}

}  // namespace steadfast::cuda
