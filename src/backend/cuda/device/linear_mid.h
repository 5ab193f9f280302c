// Linear for 9 to 96 rows on sm_90a: one block a multiprocessor, all rows at once. Warpgroups expand 64 features'
// weights each in registers, as A of wgmma; the rows are B. kTeams pairs of warpgroups have a tile of 128 features each
// and share the rows. A stage is a few chunks; a feeding thread brings it by bulk copies, weights before the launches
// before this one have finished. Blocks take runs of the launch's work as linear_cut.h has them. Where a cut falls
// inside a slice of K, its sums go from one block to the next, which goes on with them: one chain, the same bits. Sums
// of a column's slices lie in device memory until its last one is done and are added in ascending order.
#pragma once

#include "backend/cuda/device/linear_rows.h"
#include "backend/cuda/device/wgmma.h"
#include "backend/cuda/linear_cut.h"

namespace steadfast::cuda {

template <Form kForm, int kRows>
struct MidShape {
  static constexpr int kTeams = mid_teams(kForm, kRows);
  static constexpr int kWarps = kTeams * kTeamWarps;  // that multiply; one more feeds them
  static constexpr int kThreads = (kWarps + 1) * 32;
  // Each quarter of a multiprocessor has its own registers, so warps come in fours.
  static constexpr int kBound = round_up(kWarps + 1, 4) * 32;
  // By registers: buffers of fragments.
  static constexpr int kBuffers = kTeams == 1 || kRows <= 16 || (kRows == 32 && kForm != Form::kEightFloat) ? 2 : 1;
  // A chunk's codes are read before the product of the one before is done. Not where registers are scarce; nor dense
  // ones, which are fragments themselves: the product would still read the registers that the next codes go to.
  static constexpr bool kAhead = kForm != Form::kDense && (kBuffers == 2 || !float_scales(kForm));
  static constexpr int kStage = pack_group(kForm) == 4 ? 4 : 2;  // chunks
  static constexpr int kTileBytes = kStage * kTileStrips * strip_bytes(kForm);
  static constexpr int kRowBytes = kRows * kChunkRowBytes;  // of a chunk
  static constexpr int kStageBytes = kTeams * kTileBytes + kStage * kRowBytes;
  static constexpr int kRoom = 218 * 1024;  // of 227 KiB: the kernels before and after still fit beside it
  static constexpr int kStages = kRoom / kStageBytes < 16 ? kRoom / kStageBytes : 16;
  static constexpr int kSharedBytes = kStages * kStageBytes;
  static_assert(kStages >= 2 && kRowBytes % 1024 == 0 && kTileBytes % 1024 == 0);
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The same value, of which the compiler knows nothing: what follows from it is not computed ahead of a loop and kept in
// registers that the loop's sums need.
template <typename Word>
__device__ Word anew(Word value) {
  asm volatile("" : "+r"(value));
  return value;
}

__device__ inline LinearCut cut_of(const LinearLaunch& launch) {
  return {launch.mid.columns, launch.chunks, launch.slices, launch.mid.workers};
}
// The chunks of a segment: [begin, end).
__device__ inline int chunk_begin(const LinearWalk& walk) { return walk.from * kSliceUnit; }
__device__ inline int chunk_end(const LinearLaunch& launch, const LinearWalk& walk) {
  return min(walk.to * kSliceUnit, launch.chunks);
}

// A worker's stages: at most kStage chunks, fewer at a tile's end.
template <int kStage>
struct MidStages {
  const LinearLaunch& launch;
  int worker, chunk = 0;
  LinearWalk walk;
  bool valid = true;

  __device__ MidStages(const LinearLaunch& of, int who) : launch(of), worker(who) { next_segment(); }
  __device__ bool opens_segment() const { return chunk == chunk_begin(walk); }
  __device__ int chunks() const { return min(kStage, launch.chunks - chunk); }
  __device__ void next() {
    chunk += kStage;
    if (chunk >= chunk_end(launch, walk)) next_segment();
  }

 private:
  __device__ void next_segment() {
    valid = walk.next(cut_of(launch), worker);
    chunk = chunk_begin(walk);
  }
};

// Shared memory: stages of each team's weights as they are packed, then of [chunk][row]; full barriers, then empty
// ones.
template <Form kForm, int kRows>
struct MidRing {
  using Shape = MidShape<kForm, kRows>;
  std::uint32_t base, barriers;

  __device__ std::uint32_t weights(int slot) const { return base + slot * Shape::kStageBytes; }
  __device__ std::uint32_t rows(int slot) const { return weights(slot) + Shape::kTeams * Shape::kTileBytes; }
  __device__ std::uint32_t full(int slot) const { return barriers + slot * 8; }
  __device__ std::uint32_t empty(int slot) const { return barriers + (Shape::kStages + slot) * 8; }
};

template <Form kForm, int kRows>
__device__ void mid_feed(const LinearLaunch& launch, const MidRing<kForm, kRows>& ring) {
  using Shape = MidShape<kForm, kRows>;
  constexpr int kTeams = Shape::kTeams, kChunkBytes = kTileStrips * strip_bytes(kForm);
  using Stages = MidStages<Shape::kStage>;
  const std::uint64_t once = read_once(), keep = keep_in_l2();
  const int worker = static_cast<int>(blockIdx.x);
  const std::uint8_t* sources[kTeams];
  const auto weights = [&](const Stages& stages, int slot) {
    const std::uint32_t barrier = ring.full(slot);
    barrier_expect(barrier, stages.chunks() * (kTeams * kChunkBytes + Shape::kRowBytes));
#pragma unroll
    for (int t = 0; t < kTeams; ++t) {
      if (stages.opens_segment()) {  // behind the last tile the last one is worked on, for nothing
        const int tile = min(stages.walk.column * kTeams + t, launch.tiles - 1);
        sources[t] = strip_source<kForm>(launch, job_of(launch, tile), tile * kTileStrips, 0);
      }
      bulk_copy(ring.weights(slot) + t * Shape::kTileBytes,
                sources[t] + static_cast<std::size_t>(stages.chunk) * kChunkBytes, stages.chunks() * kChunkBytes,
                barrier, once);
    }
  };
  const auto rows = [&](const Stages& stages, int slot) {
    bulk_copy(ring.rows(slot), launch.x + static_cast<std::size_t>(stages.chunk) * Shape::kRowBytes,
              stages.chunks() * Shape::kRowBytes, ring.full(slot), keep);
  };
  Stages stages(launch, worker), late(launch, worker);
  int filled = 0;
  for (; stages.valid && filled < Shape::kStages; stages.next()) weights(stages, filled++);
  wait_for_earlier();
  for (int slot = 0; slot < filled; ++slot, late.next()) rows(late, slot);
  std::uint32_t phase = 0;
  for (int slot = 0; stages.valid; stages.next()) {
    barrier_wait(ring.empty(slot), phase);
    weights(stages, slot);
    rows(stages, slot);
    if (++slot == Shape::kStages) slot = 0, phase ^= 1;
  }
}

// A consumer warp: 16 features of a tile, by all rows.
template <Form kForm, int kRows>
struct MidWarp {
  using Shape = MidShape<kForm, kRows>;
  static constexpr int kSums = kRows / 2, kVectors = kRows / 8;

  const LinearLaunch& launch;
  MidRing<kForm, kRows> ring;
  int worker, warp, lane;
  int slot = 0, held = -1;  // held: the slot before, not yet released
  std::uint32_t phase = 0;
  bool handing = false;  // sums are written for the next worker, the flag not yet raised

  __device__ void release() {
    if (lane == 0 && held >= 0) barrier_arrive(ring.empty(held));
    held = -1;
  }

  // Two chunks: their codes from weights_at, `step` bytes apart, and their rows. With two buffers a chunk's fragments
  // are made while those of the one before are still read.
  __device__ void multiply(std::uint32_t weights_at, int step, std::uint64_t rows,
                           std::uint32_t (&a)[Shape::kBuffers][4][4], float (&sum)[kSums]) {
    constexpr bool kTwo = Shape::kBuffers == 2;
    Fragments<kForm> weights[2];
    weights[0].load(weights_at, lane);
    if (kTwo && Shape::kAhead) weights[1].load(weights_at + step, lane);
    for_steps<0, 2>([&](auto chunk_constant) {
      constexpr int kIn = decltype(chunk_constant)::value;
      auto& fragments = a[kTwo ? kIn : 0];
      for_steps<0, 4>([&](auto step_constant) {
        constexpr int kStep = decltype(step_constant)::value;
        weights[kIn].template expand<kStep>(fragments[kStep]);
      });
      wgmma_begin();
#pragma unroll
      for (int k = 0; k < 4; ++k) wgmma(sum, fragments[k], rows + kIn * (Shape::kRowBytes / 16) + 2 * k);
      wgmma_close();
      if (kTwo) {
        wgmma_wait<1>();
        if (kIn == 0) release();
      } else {
        if (Shape::kAhead && kIn == 0) weights[1].load(weights_at + step, lane);
        wgmma_wait<0>();
        wgmma_sums_ready(sum);
      }
      if (!Shape::kAhead && kIn == 0) weights[1].load(weights_at + step, lane);
    });
  }

  // A stage of `chunks` chunks.
  __device__ void multiply_stage(int chunks, std::uint32_t (&a)[Shape::kBuffers][4][4], float (&sum)[kSums]) {
    constexpr int kBytes = strip_bytes(kForm);
    barrier_wait(ring.full(slot), phase);
    // Of one lane, so that the compiler sees the same value in all.
    const std::uint64_t rows = wgmma_rows(__shfl_sync(0xFFFFFFFFu, ring.rows(slot), 0));
    const std::uint32_t tile = ring.weights(slot) + warp / kTeamWarps * Shape::kTileBytes;
    const int strip = warp % kTeamWarps;
    if constexpr (pack_group(kForm) == 1) {
      multiply(tile + strip * kBytes, kTileStrips * kBytes, rows, a, sum);
    } else {
      const std::uint32_t at = tile + strip * chunks * kBytes;
      multiply(at, kBytes, rows, a, sum);
      if (Shape::kStage == 4 && chunks == 4) multiply(at + 2 * kBytes, kBytes, rows + Shape::kRowBytes / 8, a, sum);
    }
    held = slot;
    if (Shape::kBuffers == 1) release();
    if (++slot == Shape::kStages) slot = 0, phase ^= 1;
  }

  static __device__ void write(float4* to, const float (&sum)[kSums]) {
#pragma unroll
    for (int j = 0; j < kVectors; ++j)
      __stcg(to + j * 32, make_float4(sum[4 * j], sum[4 * j + 1], sum[4 * j + 2], sum[4 * j + 3]));
  }

  // sum = what is there, or that + sum.
  static __device__ void add(const float4* from, bool alone, float (&sum)[kSums]) {
#pragma unroll
    for (int j = 0; j < kVectors; ++j) {
      const float4 v = __ldcg(from + j * 32);
      const float values[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[4 * j + i] = alone ? values[i] : values[i] + sum[4 * j + i];
    }
  }

  // Sums on their way from one worker to the next, and the flag that they have arrived. The flag is raised later than
  // they are written, so that nobody waits for them to arrive.
  __device__ float4* handed(int of) const {
    return reinterpret_cast<float4*>(launch.mid.handed) +
           static_cast<std::size_t>(of * Shape::kWarps + warp) * (kVectors * 32) + anew(lane);
  }
  __device__ std::uint32_t* flag(int of) const { return launch.mid.flags + of * Shape::kWarps + warp; }
  __device__ void raise_flag() {
    if (!handing) return;
    handing = false;
    __syncwarp();
    if (lane == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag(worker)) : "memory");
  }
  __device__ void take_over(float (&sum)[kSums]) const {
    if (lane == 0) {
      std::uint32_t raised;
      do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(raised) : "l"(flag(worker - 1)) : "memory");
      } while (raised == 0);
      *flag(worker - 1) = 0;
    }
    __syncwarp();
    add(handed(worker - 1), true, sum);
  }

  // Sums of the slices of a column that several workers share: all written before one of them is counted. The first
  // worker whose run begins inside the column gives them their place.
  __device__ int strip_of(int column) const {
    const LinearCut cut = cut_of(launch);
    return cut.worker_behind(column * cut.steps()) * Shape::kWarps + warp;
  }
  __device__ float4* part(int strip, int slice) const {
    return reinterpret_cast<float4*>(launch.partials) +
           static_cast<std::size_t>(strip * launch.slices + slice) * (kVectors * 32) + anew(lane);
  }
  // Counts `parts` slices of a column as written; who counts the last of all adds them and stores.
  __device__ void join(int column, int parts, float (&sum)[kSums]) const {
    if (parts == 0) return;
    const int strip = strip_of(column);
    std::uint32_t counted = 0;
    __syncwarp();
    if (lane == 0) {
      asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
                   : "=r"(counted)
                   : "l"(launch.counters + strip), "r"(parts)
                   : "memory");
      if (static_cast<int>(counted) + parts == launch.slices) launch.counters[strip] = 0;
    }
    counted = __shfl_sync(0xFFFFFFFFu, counted, 0);
    if (static_cast<int>(counted) + parts != launch.slices) return;
#pragma unroll 1
    for (int slice = 0; slice < launch.slices; ++slice) add(part(strip, slice), slice == 0, sum);
    store(sum, column);
  }

  __device__ void store(const float (&value)[kSums], int column) const {
    constexpr int kPiece = 16;  // rows at a time, by registers
    const int tile = column * Shape::kTeams + warp / kTeamWarps;
    if (tile >= launch.tiles) return;
    const JobView& job = job_of(launch, tile);
    const int feature = (tile - job.first_tile) * kTileFeatures + anew(warp) % kTeamWarps * kStripFeatures;
#pragma unroll
    for (int r = 0; r < kRows; r += kPiece) store_strip<kPiece>(launch, job, value + r / 2, feature, anew(lane), r);
  }

  // The segment ends a slice of a column. What this worker alone adds up lies in one place, its own.
  __device__ void close_slice(const LinearWalk& walk, int& first_parts, int& last_parts, float (&sum)[kSums]) const {
    const LinearCut cut = cut_of(launch);
    const int self = anew(worker);
    if (cut.slices > 1 && !cut.has_whole_column(self, walk.column)) {
      write(part(strip_of(walk.column), walk.slice), sum);
      ++(walk.column * cut.steps() < cut.begin(self) ? first_parts : last_parts);
      return;
    }
    float4* own = handed(launch.mid.workers + self);
    if (walk.slice > 0) add(own, false, sum);
    if (walk.slice + 1 < cut.slices)
      write(own, sum);
    else
      store(sum, walk.column);
  }

  __device__ void run() {
    float sum[kSums];
    std::uint32_t a[Shape::kBuffers][4][4];
    int first_parts = 0, last_parts = 0;  // slices written of the column that begins before the run, of the last one
    LinearWalk walk;
#pragma unroll 1
    while (walk.next(cut_of(launch), anew(worker))) {
      if (walk.opens) {
#pragma unroll
        for (int i = 0; i < kSums; ++i) sum[i] = 0;
      } else {
        raise_flag();
        take_over(sum);
      }
      wgmma_sums_ready(sum);
      int left = chunk_end(launch, walk) - chunk_begin(walk);
#pragma unroll 1
      do {
        multiply_stage(min(left, Shape::kStage), a, sum);
        raise_flag();
      } while ((left -= Shape::kStage) > 0);
      if (Shape::kBuffers == 2) {
        wgmma_wait<0>();
        wgmma_sums_ready(sum);
        release();
      }
      if (walk.closes) {
        close_slice(walk, first_parts, last_parts, sum);
      } else {
        write(handed(worker), sum);
        handing = true;
      }
    }
    raise_flag();
    const LinearCut cut = cut_of(launch);
    join(cut.begin(anew(worker)) / cut.steps(), first_parts, sum);
    join((cut.begin(anew(worker) + 1) - 1) / cut.steps(), last_parts, sum);
  }
};

#endif

template <Form kForm, int kRows>
__global__ void __launch_bounds__(MidShape<kForm, kRows>::kBound, 1)
    linear_mid([[maybe_unused]] const __grid_constant__ LinearLaunch launch) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = MidShape<kForm, kRows>;
  extern __shared__ __align__(1024) std::uint8_t memory[];
  __shared__ __align__(8) std::uint64_t barriers[2 * Shape::kStages];
  const MidRing<kForm, kRows> ring{anew(shared_address(memory)), anew(shared_address(barriers))};
  begin_next();
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      barrier_init(ring.full(i), 1);
      barrier_init(ring.empty(i), Shape::kWarps);
    }
    barriers_visible();
  }
  __syncthreads();
  const int warp = __shfl_sync(0xFFFFFFFFu, static_cast<int>(threadIdx.x) / 32, 0);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (warp == Shape::kWarps) {
    if (lane == 0) mid_feed<kForm, kRows>(launch, ring);
  } else {
    wait_for_earlier();
    MidWarp<kForm, kRows>{launch, ring, static_cast<int>(blockIdx.x), warp, lane}.run();
  }
#endif
}

}  // namespace steadfast::cuda
