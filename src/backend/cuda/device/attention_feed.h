// How wgmma's consumers are fed on sm_90a: a producer warp draws items and brings their tiles of 64 positions by bulk
// copies into a ring in shared memory, in the order K0, K1 V0, K2 V1, ...; fp8 tiles land in a ring of their own, and
// converting warps expand them, scales included, into the ring of bf16 tiles.
#pragma once

#include "backend/cuda/device/attention_items.h"
#include "backend/cuda/device/attention_mma.h"
#include "backend/cuda/device/attention_rows.h"
#include "backend/cuda/device/attention_wgmma.h"
#include "backend/cuda/device/wait.h"

namespace steadfast::cuda {

constexpr int kGroupPairs = 64, kThreads = 384, kGroup = 128;
constexpr int kMostSlots = 8;

// kBlocks: blocks of 64 dims of a head. Short fp8 pieces keep the second group for expanding: few pairs, many bytes.
template <int kBlocks, bool kFp8, bool kShort>
struct Shape {
  static constexpr int kBytes = kFp8 ? 64 : 128;  // of 64 dims in the cache
  static constexpr int kGroups = kFp8 && kShort ? 1 : 2, kUnitPairs = kGroups * kGroupPairs;
  static constexpr int kConverters = !kFp8 ? 0 : kShort ? 7 : 3;  // warps
  static constexpr int kTileBytes = kBlocks * kTile * 128, kQueryBytes = kBlocks * kGroupPairs * 128;
  static constexpr int kSlots = kBlocks < 4 ? kMostSlots : !kFp8 ? 5 : kShort ? 4 : 3;
  static constexpr int kScales = kTile * static_cast<int>(sizeof(float));
  static constexpr int kRawBytes = kBlocks * kTile * 64 + kScales, kRawSlots = kFp8 ? 4 : 0;
  static constexpr int kRing = kGroups * kQueryBytes, kRaw = kRing + kSlots * kTileBytes;
  static constexpr int kShared = 1024 + kRaw + kRawSlots * kRawBytes;
};

struct Barriers {
  std::uint64_t full[kMostSlots], empty[kMostSlots], raw_full[4], raw_empty[4], item_full[2], item_empty[2];
};

struct Memory {
  std::uint32_t base;  // shared address of queries; ring and raw tiles behind
  Barriers* barriers;
  struct PublishedItem* items;  // two
};

// An item with its piece, in shared memory: it costs no registers.
struct PublishedItem : AttentionItem {
  int first_masked[2];  // of each consumer group: the first tile with positions that some of its pairs do not see
};

// A place in a ring of kSlots, and how often it was passed.
template <int kSlots>
struct Turn {
  int slot = 0;
  std::uint32_t phase = 0;
  __device__ __forceinline__ void advance() {
    if (++slot == kSlots) {
      slot = 0;
      phase ^= 1;
    }
  }
};

// The items that the producer publishes, for the warps that follow it. An item stays until it is released; at most one
// further may be taken meanwhile.
struct Queue {
  const Memory& memory;
  int taken = 0;
  __device__ __forceinline__ const PublishedItem& take() {
    const int slot = taken % 2, phase = taken / 2 % 2;
    ++taken;
    barrier_wait(shared_address(&memory.barriers->item_full[slot]), phase);
    return memory.items[slot];
  }
  // The item taken `before` the last one.
  __device__ __forceinline__ void release(int before) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(shared_address(&memory.barriers->item_empty[(taken - 1 - before) % 2]));
  }
};

// Lanes share the copies of one tile; all of it arrives at `barrier`. Positions behind the piece's last are taken from
// the start of its last page.
template <class S, int kBlocks>
__device__ __forceinline__ void copy_tile(const AttentionTask& task, const PublishedItem& item, bool keys, int tile,
                                          std::uint32_t to, std::uint32_t barrier) {
  constexpr bool kFp8 = S::kBytes == 64;
  const KvPiece& piece = item.kv;
  const int lane = static_cast<int>(threadIdx.x) % 32, part = min(piece.page_positions, kTile);
  if (lane == 0) barrier_expect(barrier, kFp8 ? S::kRawBytes : S::kTileBytes);
  __syncwarp();
  const int j = lane / kBlocks, block = lane % kBlocks;
  if (j * part >= kTile) return;
  const int last = (piece.first_position + piece.rows - 1) & ~(part - 1);
  const int position = min(tile * kTile + j * part, last), page = position >> piece.page_shift;
  const int within = position - (page << piece.page_shift);
  const std::ptrdiff_t start =  // in positions
      (static_cast<std::ptrdiff_t>(task.tables[piece.table + page]) * task.kv_heads + item.head) *
          piece.page_positions +
      within;
  bulk_copy(to + block * (kTile * S::kBytes) + j * part * S::kBytes,
            (keys ? piece.keys : piece.values) + start * (kBlocks * S::kBytes) + block * part * S::kBytes,
            part * S::kBytes, barrier);
  if (kFp8 && block == 0)
    bulk_copy(to + kBlocks * kTile * 64 + j * part * 4, (keys ? piece.key_scales : piece.value_scales) + start,
              part * 4, barrier);
}

// One warp: draws items, publishes them, brings their tiles in the order K0, K1 V0, K2 V1, ..., V last.
template <int kBlocks, bool kFp8, bool kShort>
__device__ __forceinline__ void produce(const AttentionTask& task, const Memory& memory) {
  using S = Shape<kBlocks, kFp8, kShort>;
  constexpr int kSlots = kFp8 ? S::kRawSlots : S::kSlots, kSlotBytes = kFp8 ? S::kRawBytes : S::kTileBytes;
  Barriers& barriers = *memory.barriers;
  std::uint64_t *full = kFp8 ? barriers.raw_full : barriers.full, *empty = kFp8 ? barriers.raw_empty : barriers.empty;
  const std::uint32_t ring = memory.base + (kFp8 ? S::kRaw : S::kRing);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const AttentionList& list = *task.work.list;
  Turn<kSlots> turn;
  Turn<2> queue;
  ItemNumbers numbers;
  const auto draw = [&] {
    barrier_wait(shared_address(&barriers.item_empty[queue.slot]), queue.phase ^ 1);
    PublishedItem& item = memory.items[queue.slot];
    next_item<S::kUnitPairs, kShort>(task, list, numbers, item);
    if (lane != 0 || item.end_tile == 0) return;
    for (int group = 0; group < 2; ++group)
      item.first_masked[group] =
          (item.kv.first_position + (item.unit * S::kUnitPairs + group * kGroupPairs) / task.group + 1) / kTile;
  };
  draw();
  wait_for_earlier();  // the list is the host's: the first item was drawn meanwhile
  numbers.draw_ahead(task);
  for (;;) {
    if (lane == 0) barrier_arrive(shared_address(&barriers.item_full[queue.slot]));
    __syncwarp();
    const PublishedItem& item = memory.items[queue.slot];
    queue.advance();
    if (item.end_tile == 0) break;
    const auto load = [&](bool keys, int tile) {
      barrier_wait(shared_address(&empty[turn.slot]), turn.phase ^ 1);
      copy_tile<S, kBlocks>(task, item, keys, tile, ring + turn.slot * kSlotBytes, shared_address(&full[turn.slot]));
      turn.advance();
    };
    const int end = item.end_tile;
    load(true, item.first_tile);
#pragma unroll 1
    for (int tile = item.first_tile; tile + 1 < end; ++tile) {
      load(true, tile + 1);
      load(false, tile);
    }
    load(false, end - 1);
    draw();
  }
  if (lane == 0) end_items(task);
}

// A share of one fp8 tile becomes bf16, times its positions' scales: powers of two, so nothing is rounded. A thread
// takes piece thread % 4 of every kStep-th row (64 dims of a position); the XORs of its rows are all alike.
template <int kBlocks, int kWarps>
__device__ __forceinline__ void expand_tile(std::uint32_t raw, std::uint32_t to, int thread) {
  constexpr int kRows = kBlocks * kTile, kStep = kWarps * 8;
  constexpr int kSome = kWarps > 3 ? 5 : 2;  // rows under way at once
  static_assert(kStep % 8 == 0 && kRows % 8 == 0);
  const int start = thread / 4, c = thread % 4;
  const std::uint32_t from = raw + ((c ^ swizzle<64>(start)) << 4), scales = raw + kRows * 64;
  const std::uint32_t even = to + (((2 * c) ^ (start & 7)) << 4), odd = to + (((2 * c + 1) ^ (start & 7)) << 4);
#pragma unroll 1
  for (int row = start; row < kRows; row += kSome * kStep) {
    std::uint32_t words[kSome][4], scale[kSome];
    bool large = false;
#pragma unroll
    for (int i = 0; i < kSome; ++i) {
      const int at = min(row + i * kStep, kRows - 1);
      asm volatile("ld.shared.b32 %0, [%1];" : "=r"(scale[i]) : "r"(scales + at % kTile * 4));
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(words[i][0]), "=r"(words[i][1]), "=r"(words[i][2]), "=r"(words[i][3])
                   : "r"(from + at * 64));
      large = large || scale[i] > ExpandScale::kLargest;
    }
    large = __any_sync(0xFFFFFFFFu, large);
#pragma unroll
    for (int i = 0; i < kSome; ++i) {
      const int at = row + i * kStep;
      if (at >= kRows) break;
      const ExpandScale factors(scale[i], large);
      std::uint32_t low[4], high[4];
#pragma unroll
      for (int y = 0; y < 4; ++y) expand_e4m3(words[i][y], factors.first, low[y], high[y]);
      if (large) {
#pragma unroll
        for (int y = 0; y < 4; ++y) {
          low[y] = multiply_bf16x2(low[y], factors.second);
          high[y] = multiply_bf16x2(high[y], factors.second);
        }
      }
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(even + at * 128), "r"(low[0]), "r"(low[1]),
                   "r"(low[2]), "r"(low[3])
                   : "memory");
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(odd + at * 128), "r"(high[0]), "r"(high[1]),
                   "r"(high[2]), "r"(high[3])
                   : "memory");
    }
  }
}

// thread: among the converting warps.
template <int kBlocks, bool kShort>
__device__ __forceinline__ void convert(const Memory& memory, int thread) {
  using S = Shape<kBlocks, true, kShort>;
  const int lane = thread % 32;
  Queue queue{memory};
  Turn<S::kRawSlots> raw;
  Turn<S::kSlots> turn;
  for (;;) {
    const PublishedItem& item = queue.take();
    if (item.end_tile == 0) return;
    const int count = 2 * (item.end_tile - item.first_tile);
    queue.release(0);
    for (int left = count; left > 0; --left) {
      barrier_wait(shared_address(&memory.barriers->raw_full[raw.slot]), raw.phase);
      barrier_wait(shared_address(&memory.barriers->empty[turn.slot]), turn.phase ^ 1);
      expand_tile<kBlocks, S::kConverters>(memory.base + S::kRaw + raw.slot * S::kRawBytes,
                                           memory.base + S::kRing + turn.slot * S::kTileBytes, thread);
      fence_async_proxy();
      __syncwarp();
      if (lane == 0) {
        barrier_arrive(shared_address(&memory.barriers->full[turn.slot]));
        barrier_arrive(shared_address(&memory.barriers->raw_empty[raw.slot]));
      }
      raw.advance();
      turn.advance();
    }
  }
}

}  // namespace steadfast::cuda
