// Linear for many rows on sm_90a: one block a multiprocessor for the whole launch, pairs of blocks (clusters) that work
// on neighbouring tiles of 128 features and the same rows. A producer thread brings a chunk a stage: its tile's weights
// by a bulk copy, half of the rows to both blocks by another. Two warpgroups of 64 features expand the weights in
// registers, as A of wgmma; the rows are B. Slices of K are added in registers (kFolds), in ascending order. Work is
// cut into units of kRows rows by a pair of tiles, taken in turn by the clusters; what does not divide, and the rows
// left over, go out in units of 64 rows.
#pragma once

#include "backend/cuda/device/linear_rows.h"
#include "backend/cuda/device/wgmma.h"

namespace steadfast::cuda {

inline constexpr int kRowTilesAtOnce =
    8;  // row tiles whose units go through the features together, so that both stay in L2

template <Form kForm, bool kFolds>
struct WideShape {
  // By registers: sums, and totals of slices; larger codes.
  static constexpr int kRows = kFolds ? 128 : code_bytes(kForm) == 512 ? 256 : 192;
  static constexpr int kThreads = 3 * 128;
  static constexpr int kWarps = 8;  // that multiply
  static constexpr int kRowBytes = kRows * kChunkRowBytes;
  static constexpr int kGroup = pack_group(kForm);  // chunks of weights that come together
  static constexpr int kTileBytes = kTileStrips * strip_bytes(kForm);
  static constexpr int kGroups = kGroup == 1 ? 4 : 3;  // of weights, in their own ring
  static constexpr int kRoom = 226 * 1024 - kGroups * kGroup * kTileBytes;
  static constexpr int kStages = kRoom / kRowBytes < 8 ? kRoom / kRowBytes : 8;
  static constexpr int kSharedBytes = kStages * kRowBytes + kGroups * kGroup * kTileBytes;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// To the same place of both blocks of the cluster, each block's own barrier.
__device__ inline void bulk_copy_both(std::uint32_t to, const void* from, std::uint32_t bytes, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
      "%4;" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier), "h"(static_cast<unsigned short>(3))
      : "memory");
}
__device__ inline std::uint32_t in_block(std::uint32_t address, std::uint32_t rank) {
  std::uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}
__device__ inline void barrier_arrive_in(std::uint32_t mapped_barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(mapped_barrier) : "memory");
}
__device__ inline void cluster_meet() {
  asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory");
}

// A unit of work: which rows, which pair of tiles. Units below wide.full have kRows rows.
struct WideUnit {
  int pair, first_row;
  bool is_small;
};

template <int kRows>
__device__ WideUnit tall_unit(const LinearLaunch& launch, int unit) {
  const int pairs = (launch.tiles + 1) / 2, group = unit / (kRowTilesAtOnce * pairs);
  const int inner = unit % (kRowTilesAtOnce * pairs);
  const int rows = min(kRowTilesAtOnce, launch.wide.tall - group * kRowTilesAtOnce);
  return {inner / rows, (group * kRowTilesAtOnce + inner % rows) * kRows, false};
}

template <int kRows>
__device__ WideUnit unit_at(const LinearLaunch& launch, int index) {
  constexpr int kPieces = kRows / kSmallRows;
  if (index < launch.wide.full) return tall_unit<kRows>(launch, index);
  const int piece = index - launch.wide.full;
  if (piece < launch.wide.pieces) {
    const WideUnit whole = tall_unit<kRows>(launch, launch.wide.full + piece / kPieces);
    return {whole.pair, whole.first_row + piece % kPieces * kSmallRows, true};
  }
  const int rest = piece - launch.wide.pieces;
  return {rest / launch.wide.left, launch.wide.tall * kRows + rest % launch.wide.left * kSmallRows, true};
}

// Shared memory: stages of rows, then groups of weights; full and empty barriers of the rows, then of the weights.
template <Form kForm, bool kFolds>
struct WideRing {
  using Shape = WideShape<kForm, kFolds>;
  std::uint32_t base, barriers;

  __device__ std::uint32_t rows(int slot) const { return base + slot * Shape::kRowBytes; }
  __device__ std::uint32_t weights(int group) const {
    return base + Shape::kStages * Shape::kRowBytes + group * Shape::kGroup * Shape::kTileBytes;
  }
  __device__ std::uint32_t full(int slot) const { return barriers + slot * 8; }
  __device__ std::uint32_t empty(int slot) const { return barriers + (Shape::kStages + slot) * 8; }
  __device__ std::uint32_t group_full(int group) const { return barriers + (2 * Shape::kStages + group) * 8; }
  __device__ std::uint32_t group_empty(int group) const {
    return barriers + (2 * Shape::kStages + Shape::kGroups + group) * 8;
  }
};

template <Form kForm, bool kFolds>
__device__ void wide_feed(const LinearLaunch& launch, const WideRing<kForm, kFolds>& ring) {
  using Shape = WideShape<kForm, kFolds>;
  const std::uint32_t rank = blockIdx.x % 2;
  int slot = 0, group = 0;
  std::uint32_t phase = 1, group_phase = 1;
  for (int index = static_cast<int>(blockIdx.x) / 2; index < launch.wide.units;
       index += static_cast<int>(gridDim.x) / 2) {
    const WideUnit unit = unit_at<Shape::kRows>(launch, index);
    const int half = (unit.is_small ? kSmallRows : Shape::kRows) / 2 * kChunkRowBytes;
    const int tile = min(unit.pair * 2 + static_cast<int>(rank), launch.tiles - 1);
    const std::uint8_t* weights = strip_source<kForm>(launch, job_of(launch, tile), tile * kTileStrips, 0);
    const std::uint8_t* rows = launch.x + static_cast<std::size_t>(unit.first_row) * kChunkRowBytes + rank * half;
    const std::size_t row_step = static_cast<std::size_t>(launch.padded_rows) * kChunkRowBytes;
    for (int chunk = 0; chunk < launch.chunks; ++chunk) {
      if (chunk % Shape::kGroup == 0) {
        const int bytes = min(Shape::kGroup, launch.chunks - chunk) * Shape::kTileBytes;
        barrier_wait(ring.group_empty(group), group_phase);
        barrier_expect(ring.group_full(group), bytes);
        bulk_copy(ring.weights(group), weights, bytes, ring.group_full(group));
        weights += bytes;
        if (++group == Shape::kGroups) group = 0, group_phase ^= 1;
      }
      barrier_wait(ring.empty(slot), phase);
      const std::uint32_t barrier = ring.full(slot);
      barrier_expect(barrier, 2 * half);
      bulk_copy_both(ring.rows(slot) + rank * half, rows, half, barrier);
      rows += row_step;
      if (++slot == Shape::kStages) slot = 0, phase ^= 1;
    }
  }
}

// Where a consumer warp is in the ring.
template <Form kForm, bool kFolds>
struct WideReader {
  WideRing<kForm, kFolds> ring;
  std::uint32_t other_empty;  // lanes 0 and 1: the empty barriers of block 0 and 1
  int lane, warp, slot, group;
  std::uint32_t phase, group_phase;

  __device__ void release(int of) const {
    if (lane < 2) barrier_arrive_in(other_empty + of * 8);
  }
  // The fragments of chunk kInGroup of its group, which has `size` chunks.
  template <int kInGroup>
  __device__ void load(Fragments<kForm>& weights, int size) {
    if constexpr (kInGroup == 0) barrier_wait(ring.group_full(group), group_phase);
    weights.load(ring.weights(group) + (warp * size + kInGroup) * strip_bytes(kForm), lane);
  }
  // After the last chunk's load, once what it read is in registers.
  __device__ void release_group() {
    __syncwarp();
    if (lane == 0) barrier_arrive(ring.group_empty(group));
    if (++group == WideShape<kForm, kFolds>::kGroups) group = 0, group_phase ^= 1;
  }
};

// One chunk, its fragments in one of two buffers: the other may still be read. `held`: the slot before, not yet
// released. Chunk kInGroup of a group of weights that has `size` chunks.
template <Form kForm, bool kFolds, int kRows, int kInGroup>
__device__ void wide_chunk(WideReader<kForm, kFolds>& reader, std::uint32_t (&a)[4][4], float (&sum)[kRows / 2],
                           int& held, int size) {
  Fragments<kForm> weights;
  reader.template load<kInGroup>(weights, size);
  for_steps<0, 4>([&](auto step_constant) {
    constexpr int kStep = decltype(step_constant)::value;
    weights.template expand<kStep>(a[kStep]);
  });
  if (kInGroup + 1 == size) reader.release_group();
  barrier_wait(reader.ring.full(reader.slot), reader.phase);
  const std::uint64_t rows = wgmma_rows(reader.ring.rows(reader.slot));
  wgmma_begin();
#pragma unroll
  for (int step = 0; step < 4; ++step) wgmma(sum, a[step], rows + 2 * step);
  wgmma_close();
  wgmma_wait<1>();
  if (held >= 0) reader.release(held);
  held = reader.slot;
  if (++reader.slot == WideShape<kForm, kFolds>::kStages) reader.slot = 0, reader.phase ^= 1;
}

template <Form kForm, bool kFolds, int kRows>
__device__ void wide_unit(const LinearLaunch& launch, WideReader<kForm, kFolds>& reader, int tile, bool stored,
                          int first_row) {
  const JobView& job = job_of(launch, tile);
  float sum[kRows / 2], total[kFolds ? kRows / 2 : 1];
  std::uint32_t a[2][4][4];
  const int slices = kFolds ? job.slices : 1;
  if constexpr (kFolds) {  // x + -0 is x, whatever x
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i) total[i] = -0.0f;
  }
#pragma unroll 1
  for (int slice = 0; slice < slices; ++slice) {
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i) sum[i] = 0;
    int held = -1;
    const int end = slice_begin(launch.chunks, slices, slice + 1);
#pragma unroll 1
    for (int chunk = slice_begin(launch.chunks, slices, slice); chunk < end; chunk += kSliceUnit) {
      constexpr int kGroup = pack_group(kForm);
      const int size = min(kGroup, launch.chunks - chunk);
      wide_chunk<kForm, kFolds, kRows, 0>(reader, a[0], sum, held, size);
      wide_chunk<kForm, kFolds, kRows, 1 % kGroup>(reader, a[1], sum, held, size);
      if (chunk + 2 >= end) break;
      wide_chunk<kForm, kFolds, kRows, 2 % kGroup>(reader, a[0], sum, held, size);
      wide_chunk<kForm, kFolds, kRows, 3 % kGroup>(reader, a[1], sum, held, size);
    }
    wgmma_wait<0>();
    wgmma_sums_ready(sum);
    reader.release(held);
    if constexpr (kFolds) {
#pragma unroll
      for (int i = 0; i < kRows / 2; ++i) total[i] += sum[i];
    }
  }
  if (!stored) return;
  const int feature = (tile - job.first_tile) * kTileFeatures + reader.warp * kStripFeatures;
  constexpr int kPiece = 32;
#pragma unroll
  for (int r = 0; r < kRows; r += kPiece)
    store_strip<kPiece>(launch, job, (kFolds ? total : sum) + r / 2, feature, reader.lane, first_row + r);
}

#endif

template <Form kForm, bool kFolds>
__global__ void __launch_bounds__(WideShape<kForm, kFolds>::kThreads, 1)
    linear_wide([[maybe_unused]] const __grid_constant__ LinearLaunch launch) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = WideShape<kForm, kFolds>;
  extern __shared__ __align__(1024) std::uint8_t memory[];
  __shared__ __align__(8) std::uint64_t barriers[2 * (Shape::kStages + Shape::kGroups)];
  const WideRing<kForm, kFolds> ring{shared_address(memory), shared_address(barriers)};
  begin_next();
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      barrier_init(ring.full(i), 1);
      barrier_init(ring.empty(i), 2 * Shape::kWarps);
    }
    for (int i = 0; i < Shape::kGroups; ++i) {
      barrier_init(ring.group_full(i), 1);
      barrier_init(ring.group_empty(i), Shape::kWarps);
    }
    barriers_visible();
  }
  __syncthreads();
  cluster_meet();
  wait_for_earlier();
  const int warp = __shfl_sync(0xFFFFFFFFu, static_cast<int>(threadIdx.x) / 32, 0);
  if (warp >= Shape::kWarps) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == Shape::kWarps * 32) wide_feed<kForm, kFolds>(launch, ring);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int lane = static_cast<int>(threadIdx.x) % 32;
    WideReader<kForm, kFolds> reader{ring, in_block(ring.empty(0), lane & 1), lane, warp, 0, 0, 0, 0};
    for (int index = static_cast<int>(blockIdx.x) / 2; index < launch.wide.units;
         index += static_cast<int>(gridDim.x) / 2) {
      const WideUnit unit = unit_at<Shape::kRows>(launch, index);
      const int wanted = unit.pair * 2 + static_cast<int>(blockIdx.x % 2), tile = min(wanted, launch.tiles - 1);
      if (unit.is_small)
        wide_unit<kForm, kFolds, kSmallRows>(launch, reader, tile, wanted == tile, unit.first_row);
      else
        wide_unit<kForm, kFolds, Shape::kRows>(launch, reader, tile, wanted == tile, unit.first_row);
    }
  }
  cluster_meet();
#endif
}

}  // namespace steadfast::cuda
