// Linear on any card, 8 or 64 rows a block (blockIdx.y): a warp owns strips of 16 features, stages of a few chunks of
// weights and activations go round a ring in shared memory, which the warps fill by cp.async. A strip's sum: for each
// slice of K one chain of k16 steps from zero; slices added in ascending order, in registers, or through partials where
// blocks share a strip (the block that arrives last adds all of them, in the same order).
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
    multiply<kForm, kWarpRows, kStrips, kGroup>(strip_at, strip_bytes(kForm),  // slices are even numbers of chunks
                                                stage + Shape::kWeightBytes + half * kWarpRows * kChunkRowBytes,
                                                kRows * kChunkRowBytes, lane, lane, sums.sum);
    if (!walk.closes_slice()) continue;
    const JobView& job = job_of(launch, (walk.strip + own) / kTileStrips);
    if (walk.closes_pass() || job.slices > 1) sums.close();
    if (walk.closes_pass()) {
      finish_strips<kHalves>(launch, job, walk.strip + own, lane, first_row + half * kWarpRows, sums);
    }
  }
  wait_for_copies();
}

}  // namespace steadfast::cuda
