// An item of attention's work on the card: which unit, which tiles of positions. Items are numbered as attention_plan.h
// says; blocks draw their numbers from a counter, which the last block to end sets back to zero.
#pragma once

#include <cuda_runtime.h>

#include "backend/cuda/attention_kernels.h"
#include "backend/cuda/device/kv_layout.h"
#include "backend/cuda/device/wait.h"

namespace steadfast::cuda {

constexpr int kFlags = 16;

struct AttentionItem {
  KvPiece kv;
  int head, unit;
  int first_tile, end_tile;  // end_tile 0: there are no more items
  int slot;                  // long pieces: whose total; short pieces: first partial row of (span, head), pair 0
  int last;                  // the unit's last tile is among them
  int pairs;                 // of the piece
};

// The last of `count` ascending numbers that is at most x; the first is. A warp calls it.
template <typename First>
__device__ __forceinline__ int find_last(int count, int x, First first) {
  int found = 0;
  for (int base = 0; base < count; base += 32) {
    const int i = base + static_cast<int>(threadIdx.x) % 32;
    const int below = __popc(__ballot_sync(0xFFFFFFFFu, i < count && first(i) <= x));
    if (below > 0) found = base + below - 1;
    if (below < 32) break;
  }
  return found;
}

// A unit of an entry over spans [first_span, end_span): writes the item, false if it has no tiles. A warp calls it.
// kPairs: pairs of a unit.
template <int kPairs>
__device__ __forceinline__ bool write_item(const AttentionTask& task, const AttentionEntry& entry, int unit, int head,
                                           int first_span, int end_span, int slot, AttentionItem& item) {
  const int pairs = entry.kv.rows * task.group, last_pair = min((unit + 1) * kPairs, pairs) - 1;
  const int last_tile = (entry.kv.first_position + last_pair / task.group) / kTile;
  const int first_tile = first_tile_of_span(first_span), end_tile = min(first_tile_of_span(end_span), last_tile + 1);
  if (end_tile <= first_tile) return false;  // the unit's rows end before the spans
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kWords = sizeof(KvPiece) / 4;
  static_assert(kWords <= 32);
  if (lane < kWords)
    reinterpret_cast<std::uint32_t*>(&item.kv)[lane] = reinterpret_cast<const std::uint32_t*>(&entry.kv)[lane];
  if (lane == 0) {
    item.head = head;
    item.unit = unit;
    item.first_tile = first_tile;
    item.end_tile = end_tile;
    item.slot = slot;
    item.last = end_tile == last_tile + 1;
    item.pairs = pairs;
  }
  __syncwarp();
  return true;
}

// Writes the item of number x of short pieces.
template <int kPairs>
__device__ __forceinline__ bool short_item(const AttentionTask& task, const AttentionList& list, int x,
                                           AttentionItem& item) {
  const bool is_long = x < list.long_items;
  if (!is_long) x -= list.long_items;
  const AttentionEntry* entries = task.work.entries;
  const AttentionEntry& entry = entries[find_last(
      task.work.count, x, [&](int i) { return is_long ? entries[i].first_long : entries[i].first_short; })];
  int rest = x - (is_long ? entry.first_long : entry.first_short);
  const int head = rest % task.kv_heads;
  rest /= task.kv_heads;
  const int span = rest / entry.units + (is_long ? kShortSpans : 0);
  const int slot = entry.partial + (span * task.kv_heads + head) * entry.kv.rows * task.group;
  return write_item<kPairs>(task, entry, rest % entry.units, head, span, span + 1, slot, item);
}

template <int kPairs>
__device__ __forceinline__ bool long_item(const AttentionTask& task, const AttentionList& list, int x,
                                          AttentionItem& item) {
  const int run = find_last(list.runs, x, [&](int i) { return task.work.first_of_run[i]; });
  const int unit = x - task.work.first_of_run[run];
  const AttentionEntry* entries = task.work.entries;
  const AttentionEntry& entry = entries[find_last(task.work.count, unit, [&](int i) { return entries[i].first_unit; })];
  const int rest = unit - entry.first_unit;
  const int slot = task.work.shared_totals != 0 ? unit : static_cast<int>(blockIdx.x);
  return write_item<kPairs>(task, entry, entry.units - 1 - rest / task.kv_heads, rest % task.kv_heads,
                            run * list.run_spans, (run + 1) * list.run_spans, slot, item);
}

// The numbers of a block's items: its own first, then what the counter says, one of them always drawn ahead. The first
// may be taken before earlier launches have ended.
struct ItemNumbers {
  int next = 0;
  bool started = false, ahead = false;
  __device__ __forceinline__ void draw(const AttentionTask& task) {
    if (threadIdx.x % 32 == 0) next = static_cast<int>(gridDim.x + atomicAdd(&task.counters[0], 1u));
  }
  __device__ __forceinline__ void draw_ahead(const AttentionTask& task) {
    if (ahead) return;
    wait_for_earlier();
    ahead = true;
    draw(task);
  }
  __device__ __forceinline__ int take(const AttentionTask& task) {
    if (!started) {
      started = true;
      return static_cast<int>(blockIdx.x);
    }
    draw_ahead(task);
    const int now = __shfl_sync(0xFFFFFFFFu, next, 0);
    draw(task);
    return now;
  }
};

// Writes the block's next item that has tiles. A warp calls it.
template <int kPairs, bool kShort>
__device__ __forceinline__ void next_item(const AttentionTask& task, const AttentionList& list, ItemNumbers& numbers,
                                          AttentionItem& item) {
  for (;;) {
    const int x = numbers.take(task);
    if (x >= list.items) {
      if (threadIdx.x % 32 == 0) item.end_tile = 0;
      __syncwarp();
      return;
    }
    if (kShort ? short_item<kPairs>(task, list, x, item) : long_item<kPairs>(task, list, x, item)) return;
  }
}

// One thread of each block, after its last item.
__device__ __forceinline__ void end_items(const AttentionTask& task) {
  __threadfence();
  if (atomicAdd(&task.counters[1], 1u) != gridDim.x - 1) return;
  task.counters[0] = 0;
  task.counters[1] = 0;
  __threadfence();
}

}  // namespace steadfast::cuda
