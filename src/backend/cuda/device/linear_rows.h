// Linear for up to 64 rows a block: a warp owns strips of 16 features, stages of a few chunks of weights and
// activations go round a ring in shared memory. Two ways to feed the ring, one arithmetic: cp.async by the warps
// themselves (any card; many rows as blockIdx.y), or bulk copies by a warp of its own (sm_90; one block a
// multiprocessor takes an equal run of the launch's strips, and weights are fetched before the launches before this one
// have finished). A strip's sum: for each slice of K one chain of k16 steps from zero; slices added in ascending order,
// in registers, or through partials where blocks share a strip (the block that arrives last adds all of them, in the
// same order).
#pragma once

#include "backend/cuda/device/async_copy.h"
#include "backend/cuda/device/multiply.h"
#include "backend/cuda/device/wait.h"

namespace steadfast::cuda {

// How a block's strips and rows are shared among its warps: a unit is the strips of one warp; 64 rows go to two warps.
template <int kRows>
struct WarpShape {
  static constexpr int kStrips = kRows >= 32 ? 2 : 1;
  static constexpr int kWarpRows = kRows < 32 ? kRows : 32;
  static constexpr int kHalves = kRows / kWarpRows;
};

// What one warp adds up: kStrips strips by kRows rows; [strip][4 j + i] is feature g + 8 (i / 2), row 8 j + 2 t + i
// % 2.
template <int kRows, int kStrips>
struct StripSums {
  float sum[kStrips][kRows / 2], total[kStrips][kRows / 2];
  bool started;

  __device__ void clear() {
    started = false;
#pragma unroll
    for (int s = 0; s < kStrips; ++s)
#pragma unroll
      for (int i = 0; i < kRows / 2; ++i) sum[s][i] = 0;
  }
  // The end of a slice.
  __device__ void close() {
#pragma unroll
    for (int s = 0; s < kStrips; ++s)
#pragma unroll
      for (int i = 0; i < kRows / 2; ++i) {
        total[s][i] = started ? total[s][i] + sum[s][i] : sum[s][i];
        sum[s][i] = 0;
      }
    started = true;
  }
};

// A stage's chunks: kGroup, or half of them at a slice's end.
template <Form kForm, int kRows, int kStrips, int kGroup>
__device__ void multiply_stage(int chunks, const std::uint32_t (&strip_at)[kStrips], std::uint32_t strip_step,
                               std::uint32_t x_at, std::uint32_t x_step, int lane, float (&sum)[kStrips][kRows / 2]) {
  if (kGroup <= 2 || chunks == kGroup)
    multiply<kForm, kRows, kStrips, kGroup>(strip_at, strip_step, x_at, x_step, lane, lane, sum);
  else
    multiply<kForm, kRows, kStrips, kGroup / 2>(strip_at, strip_step, x_at, x_step, lane, lane, sum);
}

// out = value * factor + bias + add for a strip: value [kRows / 2], rows are the launch's from first_row on.
template <int kRows>
__device__ void store_strip(const LinearLaunch& launch, const JobView& job, const float* value, int strip_feature,
                            int lane, int first_row) {
  float bias[2] = {0, 0}, add[kRows / 2];
  const int feature = strip_feature + lane / 4;
  const auto inside = [&](int i, int& row) {
    row = first_row + i / 4 * 8 + lane % 4 * 2 + i % 2;
    return row < launch.rows && feature + i / 2 % 2 * 8 < job.features;
  };
#pragma unroll
  for (int h = 0; h < 2; ++h)
    if (job.bias != nullptr && feature + h * 8 < job.features) bias[h] = job.bias[feature + h * 8];
  int row;
  if (job.add != nullptr) {
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i)
      if (inside(i, row)) add[i] = job.add[row * job.stride + feature + i / 2 % 2 * 8];
  }
#pragma unroll
  for (int i = 0; i < kRows / 2; ++i) {
    if (!inside(i, row)) continue;
    float y = value[i];
    if (launch.factors != nullptr) y *= launch.factors[row];
    if (job.bias != nullptr) y += bias[i / 2 % 2];
    if (job.add != nullptr) y += add[i];
    job.out[row * job.stride + feature + i / 2 % 2 * 8] = y;
  }
}

// A part of a warp's sum of one strip (slot: which strip, which rows), where several blocks share it. True for the warp
// that came last: `value` is then the sum of all parts in ascending order.
template <int kRows>
__device__ bool add_parts(const LinearLaunch& launch, int slot, int part, int lane, float (&value)[kRows / 2]) {
  constexpr int kVectors = kRows / 8;
  auto* parts = reinterpret_cast<float4*>(launch.partials) +
                static_cast<std::size_t>(slot) * static_cast<std::size_t>(launch.parts * kVectors * 32) + lane;
#pragma unroll
  for (int j = 0; j < kVectors; ++j)
    __stcg(parts + (part * kVectors + j) * 32,
           make_float4(value[4 * j], value[4 * j + 1], value[4 * j + 2], value[4 * j + 3]));
  __syncwarp();
  unsigned arrived = 0;
  if (lane == 0) {
    __threadfence();
    arrived = atomicAdd(launch.counters + slot, 1u);
    __threadfence();
  }
  arrived = __shfl_sync(0xFFFFFFFFu, arrived, 0);
  if (arrived + 1 != static_cast<unsigned>(launch.parts)) return false;
  if (lane == 0) launch.counters[slot] = 0;
  for (int p = 0; p < launch.parts; ++p)
#pragma unroll
    for (int j = 0; j < kVectors; ++j) {
      const float4 v = __ldcg(parts + (p * kVectors + j) * 32);
      const float values[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) value[4 * j + i] = p == 0 ? values[i] : value[4 * j + i] + values[i];
    }
  return true;
}

// The stages of a block in order: passes over its strips, slices, then groups of at most kGroup chunks of a slice.
template <int kGroup, int kStrips>
struct Walk {
  const LinearLaunch& launch;
  int first_unit, units;  // of the block; a unit is kStrips strips
  int pass = 0, passes;
  int slice, first_slice, last_slice, slice_end;
  int chunk;
  int strip, strips;  // of the pass

  __device__ explicit Walk(const LinearLaunch& of) : launch(of) {
    const int part = static_cast<int>(blockIdx.x) / of.blocks_per_part;
    const int block = static_cast<int>(blockIdx.x) % of.blocks_per_part;
    const int all = of.tiles * (kTileStrips / kStrips);
    first_unit = static_cast<int>(static_cast<long long>(all) * block / of.blocks_per_part);
    units = static_cast<int>(static_cast<long long>(all) * (block + 1) / of.blocks_per_part) - first_unit;
    passes = (units + of.pass_units - 1) / of.pass_units;
    first_slice = of.parts > 1 ? part : 0;
    last_slice = of.parts > 1 ? part + 1 : of.slices;
    if (passes > 0) begin_pass();
  }
  __device__ bool valid() const { return pass < passes; }
  __device__ int chunks() const { return min(kGroup, slice_end - chunk); }
  __device__ bool opens_pass() const {
    return slice == first_slice && chunk == slice_begin(launch.chunks, launch.slices, slice);
  }
  __device__ bool closes_slice() const { return chunk + kGroup >= slice_end; }
  __device__ bool closes_pass() const { return closes_slice() && slice + 1 == last_slice; }
  __device__ void next() {
    chunk += kGroup;
    if (chunk < slice_end) return;
    if (++slice < last_slice) {
      begin_slice();
    } else if (++pass < passes) {
      begin_pass();
    }
  }

 private:
  __device__ void begin_pass() {
    const int from = units * pass / passes, to = units * (pass + 1) / passes;
    strip = (first_unit + from) * kStrips;
    strips = (to - from) * kStrips;
    slice = first_slice;
    begin_slice();
  }
  __device__ void begin_slice() {
    chunk = slice_begin(launch.chunks, launch.slices, slice);
    slice_end = slice_begin(launch.chunks, launch.slices, slice + 1);
  }
};

__device__ inline const JobView& job_of(const LinearLaunch& launch, int tile) {
  int job = 0;
#pragma unroll
  for (int j = 1; j < kMostJobs; ++j)
    if (j < launch.job_count && tile >= launch.jobs[j].first_tile) job = j;
  return launch.jobs[job];
}

// The bytes of a strip's chunk in device memory.
template <Form kForm>
__device__ const std::uint8_t* strip_source(const LinearLaunch& launch, const JobView& job, int strip, int chunk) {
  const int tile = strip / kTileStrips - job.first_tile;
  const auto at = static_cast<std::size_t>(tile) * static_cast<std::size_t>(launch.chunks) * kTileStrips +
                  static_cast<std::size_t>(strip_place(kForm, launch.chunks, strip % kTileStrips, chunk));
  return job.weight + at * static_cast<std::size_t>(strip_bytes(kForm));
}

// A warp's strips are done: fold with other blocks' parts where there are any, and store.
template <int kHalves, int kRows, int kStrips>
__device__ void finish_strips(const LinearLaunch& launch, const JobView& job, int strip, int lane, int first_row,
                              StripSums<kRows, kStrips>& sums) {
  const int part = static_cast<int>(blockIdx.x) / launch.blocks_per_part;
#pragma unroll
  for (int s = 0; s < kStrips; ++s) {
    const int mine = strip + s, slot = mine * kHalves + first_row / kRows % kHalves;
    if (launch.parts > 1 && !add_parts<kRows>(launch, slot, part, lane, sums.total[s])) continue;
    store_strip<kRows>(launch, job, sums.total[s], (mine - job.first_tile * kTileStrips) * kStripFeatures, lane,
                       first_row);
  }
}

// ---- any card: cp.async ----

template <Form kForm, int kRows>
struct PortableShape : WarpShape<kRows> {
  using WarpShape<kRows>::kStrips;
  static constexpr int kUnits = 8 / kStrips;
  static constexpr int kThreads = kUnits * WarpShape<kRows>::kHalves * 32;
  static constexpr int kGroup = kRows == 8 && code_bytes(kForm) == 512 ? 2 : 1;
  static constexpr int kStripStage = kGroup * strip_bytes(kForm);
  static constexpr int kWeightBytes = kUnits * kStrips * kStripStage;
  static constexpr int kStageBytes = kWeightBytes + kGroup * kRows * kChunkRowBytes;
  static constexpr int kRoom = 96 * 1024;  // sm_86 to sm_121 give a block 99 KiB
  static constexpr int kStages = kRoom / kStageBytes < 4 ? kRoom / kStageBytes : 4;
};

template <Form kForm, int kRows>
__global__ void __launch_bounds__(PortableShape<kForm, kRows>::kThreads, 1)
    linear_portable(const __grid_constant__ LinearLaunch launch) {
  using Shape = PortableShape<kForm, kRows>;
  constexpr int kStrips = Shape::kStrips, kGroup = Shape::kGroup, kStages = Shape::kStages;
  constexpr int kWarpRows = Shape::kWarpRows, kHalves = Shape::kHalves;
  static_assert(kStages >= 2);
  extern __shared__ __align__(128) std::uint8_t ring[];
  begin_next();
  wait_for_earlier();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = static_cast<int>(blockIdx.y) * kRows, half = warp % kHalves;
  const int own = warp / kHalves * kStrips;
  const std::uint32_t base = shared_address(ring);
  using Steps = Walk<kGroup, kStrips>;
  Steps ahead(launch);
  int ahead_slot = 0;
  const auto fetch = [&] {  // one stage, shared among the warps
    if (ahead.valid()) {
      const std::uint32_t stage = base + ahead_slot * Shape::kStageBytes;
      const int chunks = ahead.chunks();
      for (int s = warp; s < ahead.strips; s += Shape::kThreads / 32) {
        const int strip = ahead.strip + s;
        const JobView& job = job_of(launch, strip / kTileStrips);
        for (int c = 0; c < chunks; ++c) {
          const std::uint8_t* from = strip_source<kForm>(launch, job, strip, ahead.chunk + c);
          const std::uint32_t to = stage + s * Shape::kStripStage + c * strip_bytes(kForm);
          for (int i = lane * 16; i < strip_bytes(kForm); i += 32 * 16) copy_16(to + i, from + i);
        }
      }
      for (int i = static_cast<int>(threadIdx.x); i < chunks * kRows * 8; i += Shape::kThreads) {
        const std::size_t row =
            static_cast<std::size_t>(ahead.chunk + i / (kRows * 8)) * static_cast<std::size_t>(launch.padded_rows) +
            static_cast<std::size_t>(first_row + i / 8 % kRows);
        copy_16(stage + Shape::kWeightBytes + i * 16, launch.x + row * kChunkRowBytes + i % 8 * 16);
      }
      ahead.next();
      ahead_slot = ahead_slot + 1 == kStages ? 0 : ahead_slot + 1;
    }
    close_copies();
  };
  for (int i = 0; i + 1 < kStages; ++i) fetch();
  StripSums<kWarpRows, kStrips> sums;
  int slot = 0;
  for (Steps walk(launch); walk.valid(); walk.next()) {
    if (walk.opens_pass()) sums.clear();
    wait_for_older_copies<kStages - 2>();
    __syncthreads();
    fetch();
    const std::uint32_t stage = base + slot * Shape::kStageBytes;
    slot = slot + 1 == kStages ? 0 : slot + 1;
    if (own >= walk.strips) continue;
    std::uint32_t strip_at[kStrips];
#pragma unroll
    for (int s = 0; s < kStrips; ++s) strip_at[s] = stage + (own + s) * Shape::kStripStage;
    multiply_stage<kForm, kWarpRows, kStrips, kGroup>(walk.chunks(), strip_at, strip_bytes(kForm),
                                                      stage + Shape::kWeightBytes + half * kWarpRows * kChunkRowBytes,
                                                      kRows * kChunkRowBytes, lane, sums.sum);
    if (!walk.closes_slice()) continue;
    const JobView& job = job_of(launch, (walk.strip + own) / kTileStrips);
    if (walk.closes_pass() || job.slices > 1) sums.close();
    if (walk.closes_pass()) {
      finish_strips<kHalves>(launch, job, walk.strip + own, lane, first_row + half * kWarpRows, sums);
    }
  }
  wait_for_copies();
}

// ---- sm_90: bulk copies ----

template <Form kForm, int kRows>
struct BulkShape : WarpShape<kRows> {
  using WarpShape<kRows>::kStrips;
  // Each quarter of a multiprocessor has its own registers, so warps come in fours: 20, 12 or 12 with the feeder.
  static constexpr int kUnits = kRows <= 16 ? 19 : kRows == 32 ? 11 : 5;
  static constexpr int kWarps = kUnits * WarpShape<kRows>::kHalves;  // that multiply; one more feeds them
  static constexpr int kThreads = (kWarps + 1) * 32;
  static constexpr int kBound = kRows == 8 ? 768 : kThreads;  // leaves registers for the launch before or after
  static constexpr int kGroup = pack_group(kForm);
  static constexpr int kMostStages = 16;
  static constexpr int stage_bytes(int strips) {
    return kGroup * (strips * strip_bytes(kForm) + kRows * kChunkRowBytes);
  }
};

#if __CUDA_ARCH__ >= 900

// What one lane of the feeding warp copies of a pass's weights: strips of one tile lie side by side, so the pass is a
// few parts of tiles, and a lane brings one part. In shared memory: [strip][chunk].
template <Form kForm>
struct FeedLane {
  const std::uint8_t* tile = nullptr;
  int strip = 0, done = 0, count = 0;  // of the tile; of the pass before this part; of the part

  __device__ void begin_pass(const LinearLaunch& launch, int first, int strips, int lane) {
    const int head = min(kTileStrips - first % kTileStrips, strips);
    done = lane == 0 ? 0 : head + (lane - 1) * kTileStrips;
    count = max(lane == 0 ? head : min(kTileStrips, strips - done), 0);
    const int at = min(first + done, launch.tiles * kTileStrips - 1);
    strip = at % kTileStrips;
    tile = strip_source<kForm>(launch, job_of(launch, at / kTileStrips), at - strip, 0);
  }
  __device__ void copy(int from, int chunks, std::uint32_t stage, std::uint32_t barrier, std::uint64_t policy) const {
    constexpr int kBytes = strip_bytes(kForm);
    if (count == 0) return;
    bulk_copy(stage + done * chunks * kBytes,
              tile + static_cast<std::size_t>(from * kTileStrips + strip * chunks) * kBytes, count * chunks * kBytes,
              barrier, policy);
  }
};

// The feeding warp: lane 0 keeps the barriers and brings the rows, all lanes bring weights.
template <Form kForm, int kRows>
__device__ void feed(const LinearLaunch& launch, std::uint32_t ring, std::uint32_t full, std::uint32_t empty) {
  using Shape = BulkShape<kForm, kRows>;
  using Steps = Walk<Shape::kGroup, Shape::kStrips>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint64_t once = read_once(), keep = keep_in_l2();
  FeedLane<kForm> mine;
  const auto weights = [&](const Steps& walk, int slot) {
    if (walk.opens_pass()) mine.begin_pass(launch, walk.strip, walk.strips, lane);
    if (lane == 0)
      barrier_expect(full + slot * 8, walk.chunks() * (walk.strips * strip_bytes(kForm) + kRows * kChunkRowBytes));
    __syncwarp();
    mine.copy(walk.chunk, walk.chunks(), ring + slot * launch.stage_bytes, full + slot * 8, once);
  };
  const auto rows = [&](const Steps& walk, int slot) {
    if (lane != 0) return;
    bulk_copy(ring + slot * launch.stage_bytes + Shape::kGroup * walk.strips * strip_bytes(kForm),
              launch.x + static_cast<std::size_t>(walk.chunk) * (kRows * kChunkRowBytes),
              walk.chunks() * kRows * kChunkRowBytes, full + slot * 8, keep);
  };
  Steps walk(launch), late(launch);
  int filled = 0;
  for (; walk.valid() && filled < launch.stages; walk.next()) weights(walk, filled++);
  wait_for_earlier();
  for (int slot = 0; slot < filled; ++slot, late.next()) rows(late, slot);
  std::uint32_t phase = 0;
  for (int slot = 0; walk.valid(); walk.next()) {
    barrier_wait(empty + slot * 8, phase);
    weights(walk, slot);
    rows(walk, slot);
    if (++slot == launch.stages) slot = 0, phase ^= 1;
  }
}

template <Form kForm, int kRows>
__device__ void consume(const LinearLaunch& launch, std::uint32_t ring, std::uint32_t full, std::uint32_t empty) {
  using Shape = BulkShape<kForm, kRows>;
  constexpr int kStrips = Shape::kStrips, kGroup = Shape::kGroup, kBytes = strip_bytes(kForm);
  constexpr int kWarpRows = Shape::kWarpRows, kHalves = Shape::kHalves;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int own = warp / kHalves * kStrips, half = warp % kHalves;
  wait_for_earlier();
  StripSums<kWarpRows, kStrips> sums;
  std::uint32_t x_offset = 0, phase = 0;
  bool folds = false;
  int slot = 0;
  for (Walk<kGroup, kStrips> walk(launch); walk.valid(); walk.next()) {
    const bool mine = own < walk.strips;
    if (walk.opens_pass()) {
      sums.clear();
      x_offset = walk.strips * kGroup * kBytes + half * kWarpRows * kChunkRowBytes;
      folds = mine && job_of(launch, (walk.strip + own) / kTileStrips).slices > 1;
    }
    barrier_wait(full + slot * 8, phase);
    const std::uint32_t stage = ring + slot * launch.stage_bytes;
    if (mine) {
      std::uint32_t strip_at[kStrips];
#pragma unroll
      for (int s = 0; s < kStrips; ++s) strip_at[s] = stage + (own + s) * walk.chunks() * kBytes;
      multiply_stage<kForm, kWarpRows, kStrips, kGroup>(walk.chunks(), strip_at, kBytes, stage + x_offset,
                                                        kRows * kChunkRowBytes, lane, sums.sum);
    }
    __syncwarp();
    if (lane == 0) barrier_arrive(empty + slot * 8);
    if (++slot == launch.stages) slot = 0, phase ^= 1;
    if (!mine || !walk.closes_slice()) continue;
    if (walk.closes_pass() || folds) sums.close();
    if (walk.closes_pass()) {
      const int strip = walk.strip + own;
      finish_strips<kHalves>(launch, job_of(launch, strip / kTileStrips), strip, lane, half * kWarpRows, sums);
    }
  }
}

#endif

template <Form kForm, int kRows>
__global__ void __launch_bounds__(BulkShape<kForm, kRows>::kBound, 1)
    linear_bulk([[maybe_unused]] const __grid_constant__ LinearLaunch launch) {
#if __CUDA_ARCH__ == 900
  using Shape = BulkShape<kForm, kRows>;
  extern __shared__ __align__(128) std::uint8_t ring[];
  __shared__ __align__(8) std::uint64_t barriers[2 * Shape::kMostStages];
  const std::uint32_t full = shared_address(barriers), empty = full + 8 * Shape::kMostStages;
  begin_next();
  if (threadIdx.x == 0) {
    for (int i = 0; i < launch.stages; ++i) {
      barrier_init(full + i * 8, 1);
      barrier_init(empty + i * 8, Shape::kWarps);
    }
    barriers_visible();
  }
  __syncthreads();
  if (threadIdx.x >= Shape::kWarps * 32) {
    feed<kForm, kRows>(launch, shared_address(ring), full, empty);
  } else {
    consume<kForm, kRows>(launch, shared_address(ring), full, empty);
  }
#endif
}

}  // namespace steadfast::cuda
