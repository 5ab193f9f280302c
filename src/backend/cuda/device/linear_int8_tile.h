// Linear over int8 rows, any card: a block takes strips of 16 features by rows, chunks of 64 inputs go round a ring in
// shared memory by cp.async. A group's dot comes from mma.m16n8k32 (codes of
// weights unsigned, of rows signed) on sums that begin at the bits of 1.5 * 2^23: what comes out, read as a float, is
// 1.5 * 2^23 + dot, exact while |dot| < 2^22 (255 * 127 * 64 < 2^21). Sums over groups: linear_int8.h.
#pragma once

#include "backend/cuda/device/async_copy.h"
#include "backend/cuda/device/mma.h"
#include "backend/cuda/device/wait.h"
#include "backend/cuda/linear_int8_plan.h"

namespace steadfast::cuda {

// How a block is cut: strips of a warp and its eights of rows, warps along features and along rows, chunks of a stage
// (where shared memory allows, else half), blocks of a multiprocessor that registers must leave room for.
template <int kStripsOf, int kEightsOf, int kFeatures, int kRowsOf, int kChunksOf, int kBlocks>
struct Int8Tile {
  static constexpr int kStrips = kStripsOf, kEights = kEightsOf, kFeatureWarps = kFeatures, kRowWarps = kRowsOf;
  static constexpr int kMostChunks = kChunksOf, kLeastBlocks = kBlocks;
};

template <Form kForm, int kGroupInputs, typename Tile>
struct Int8Shape {
  static constexpr int kStrips = Tile::kStrips;
  static constexpr int kBlockStrips = kStrips * Tile::kFeatureWarps;
  static constexpr int kWarpRows = 8 * Tile::kEights;
  static constexpr int kRows = kWarpRows * Tile::kRowWarps;
  static constexpr int kThreads = 32 * Tile::kFeatureWarps * Tile::kRowWarps;
  static constexpr int kGroups = kChunk / kGroupInputs;  // of a chunk
  static constexpr int kWeightBytes = kBlockStrips * strip_bytes(kForm);
  static constexpr int kCodeBytes = kRows * kChunk;
  static constexpr int kScaleBytes = kRows * 8;  // of a group
  static constexpr int kChunkBytes = kWeightBytes + kCodeBytes + kGroups * kScaleBytes;
  static constexpr int kRoom = 96 * 1024;  // sm_86 to sm_121 give a block 99 KiB
  static constexpr int kChunks =
      kRoom / (Tile::kMostChunks * kChunkBytes) >= 3 ? Tile::kMostChunks : Tile::kMostChunks / 2;
  static constexpr int kStageBytes = kChunks * kChunkBytes;
  static constexpr int kStages = kRoom / kStageBytes < 6 ? kRoom / kStageBytes : 6;
  static constexpr int kSharedBytes = kStages * kStageBytes;
  // Twice the scales, or larger ones, need more registers.
  static constexpr bool kMore = kStrips > 1 && (kGroupInputs == 32 || kForm == Form::kEightFloat);
  static constexpr int kBlocks = kMore ? 1 : Tile::kLeastBlocks;
  static_assert(kStages >= 3 && kTileStrips % kBlockStrips == 0);
};

// to = from + a b; to may be from.
__device__ inline void mma_int8(int (&to)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                                const int* from) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(from[0]), "r"(from[1]), "r"(from[2]),
        "r"(from[3]));
}

// One strip's group of inputs: the fragments of its k32 steps, scale and bias of features g and g + 8.
template <Form kForm, int kGroupInputs>
struct Int8Fragments {
  static constexpr int kSteps = kGroupInputs / 32;
  std::uint32_t a[kSteps][4];
  float scale[2], bias[2];

  // Group `index` of the strip's chunk at `at`.
  __device__ void load(std::uint32_t at, int index, int lane) {
    if constexpr (code_bytes(kForm) == 512) {
      std::uint32_t words[2 * kSteps];
      if constexpr (kSteps == 2) {
        const uint4 v = load_shared16(at + lane * 16);
        words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
      } else {
        const uint2 v = load_shared8(at + lane * 16 + index * 8);
        words[0] = v.x, words[1] = v.y;
      }
#pragma unroll
      for (int s = 0; s < kSteps; ++s)
#pragma unroll
        for (int i = 0; i < 4; ++i) a[s][i] = words[2 * s + i / 2] >> (i % 2 * 4) & 0x0F0F0F0Fu;
    } else {
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        const uint4 v = load_shared16(at + (index * kSteps + s) * 512 + lane * 16);
        a[s][0] = __byte_perm(v.x, v.y, 0x6240), a[s][1] = __byte_perm(v.x, v.y, 0x7351);
        a[s][2] = __byte_perm(v.z, v.w, 0x6240), a[s][3] = __byte_perm(v.z, v.w, 0x7351);
      }
    }
    const int packed = groups_per_chunk(kForm) == 2 ? index * kSteps : 0;
    const std::uint32_t from =
        at + code_bytes(kForm) + packed * group_bytes(kForm) + lane / 4 * (group_bytes(kForm) / 8);
    if constexpr (float_scales(kForm)) {
      const uint4 v = load_shared16(from);
      scale[0] = __uint_as_float(v.x), bias[0] = __uint_as_float(v.y);
      scale[1] = __uint_as_float(v.z), bias[1] = __uint_as_float(v.w);
    } else {
      const uint2 v = load_shared8(from);
      const float back = __uint_as_float(1u << (149 - scale_exponent(kForm)));  // exact: the scale was a bf16
      scale[0] = __uint_as_float(v.x << 16) * back, bias[0] = __uint_as_float(v.x & 0xFFFF0000u);
      scale[1] = __uint_as_float(v.y << 16) * back, bias[1] = __uint_as_float(v.y & 0xFFFF0000u);
    }
  }
};

// sum += the chunk at `stage`: the warp's strips and rows. [strip][4 j + i] is feature
// g + 8 (i / 2), row 8 j + 2 t + i % 2.
template <Form kForm, int kGroupInputs, typename Tile>
__device__ void multiply_int8(std::uint32_t stage, int first_strip, int first_row, int lane,
                              float (&sum)[Tile::kStrips][4 * Tile::kEights]) {
  using Shape = Int8Shape<kForm, kGroupInputs, Tile>;
  using Fragments = Int8Fragments<kForm, kGroupInputs>;
  constexpr float kOrigin = 12582912.0f;  // 1.5 * 2^23
  const std::uint32_t codes = stage + Shape::kWeightBytes + first_row * kChunk;
  const std::uint32_t scales = stage + Shape::kWeightBytes + Shape::kCodeBytes + (first_row + lane % 4 * 2) * 8;
  const int origin[4] = {__float_as_int(kOrigin), __float_as_int(kOrigin), __float_as_int(kOrigin),
                         __float_as_int(kOrigin)};
  std::uint32_t b[Tile::kEights][4];
#pragma unroll
  for (int j = 0; j < Tile::kEights; ++j)
    load_matrices(b[j], codes + (j * 8 + lane % 8) * kChunk + ((lane / 8) ^ (lane % 8 / 2)) * 16);
#pragma unroll
  for (int u = 0; u < Shape::kGroups; ++u) {
    float4 row[Tile::kEights];  // scale, scale * sum of two rows
#pragma unroll
    for (int j = 0; j < Tile::kEights; ++j) {
      const uint4 v = load_shared16(scales + u * Shape::kScaleBytes + j * 64);
      row[j] = make_float4(__uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z), __uint_as_float(v.w));
    }
#pragma unroll
    for (int s = 0; s < Shape::kStrips; ++s) {
      Fragments weights;
      weights.load(stage + (first_strip + s) * strip_bytes(kForm), u, lane);
#pragma unroll
      for (int j = 0; j < Tile::kEights; ++j) {
        int dot[4];
#pragma unroll
        for (int k = 0; k < Fragments::kSteps; ++k) {
          const int piece = (u * Fragments::kSteps + k) * 2;
          mma_int8(dot, weights.a[k], b[j][piece], b[j][piece + 1], k == 0 ? origin : dot);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float& y = sum[s][4 * j + i];
          const float scale = i % 2 == 0 ? row[j].x : row[j].z, codes_sum = i % 2 == 0 ? row[j].y : row[j].w;
          y = __fmaf_rn(__int_as_float(dot[i]) - kOrigin, weights.scale[i / 2] * scale, y);
          y = __fmaf_rn(weights.bias[i / 2], codes_sum, y);
        }
      }
    }
  }
}

template <int kBytes, int kThreads>
__device__ void copy_bytes(std::uint32_t to, const std::uint8_t* from, int thread) {
#pragma unroll
  for (int first = 0; first < kBytes; first += kThreads * 16) {
    const int at = first + thread * 16;
    if (first + kThreads * 16 <= kBytes || at < kBytes) copy_16(to + at, from + at);
  }
}

// One chunk of strips that lie `step` bytes apart, to lie side by side.
template <int kStrips, int kBytes, int kThreads>
__device__ void copy_strips(std::uint32_t to, const std::uint8_t* from, int step, int thread) {
  constexpr int kPieces = kBytes / 16;
#pragma unroll
  for (int first = 0; first < kStrips * kPieces; first += kThreads) {
    const int piece = first + thread;
    if (first + kThreads <= kStrips * kPieces || piece < kStrips * kPieces)
      copy_16(to + piece * 16, from + piece / kPieces * step + piece % kPieces * 16);
  }
}

// out = value + bias + add.
template <int kEights>
__device__ void store_int8(const JobView& job, const float (&value)[4 * kEights], int strip_feature, int lane,
                           int first_row, int rows) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int feature = strip_feature + lane / 4 + h * 8;
    if (feature >= job.features) continue;
    const float bias = job.bias != nullptr ? job.bias[feature] : 0.0f;
#pragma unroll
    for (int i = 0; i < 2 * kEights; ++i) {
      const int row = first_row + i / 2 * 8 + lane % 4 * 2 + i % 2;
      if (row >= rows) continue;
      const std::int64_t at = row * job.stride + feature;
      float y = value[i / 2 * 4 + h * 2 + i % 2];
      if (job.bias != nullptr) y += bias;
      if (job.add != nullptr) y += job.add[at];
      job.out[at] = y;
    }
  }
}

// A block's rows and strips: 16 blocks of rows go through the features together, so that both stay in L2.
struct Int8Place {
  int job, tile, strip, row_block;

  __device__ Int8Place(const Int8Launch& launch, int block_strips) {
    constexpr int kTogether = 16;
    const int parts = kTileStrips / block_strips, across = launch.tiles * parts;
    const int set = static_cast<int>(blockIdx.x) / (kTogether * across);
    const int inner = static_cast<int>(blockIdx.x) % (kTogether * across);
    const int blocks = min(kTogether, launch.row_blocks - set * kTogether);
    row_block = set * kTogether + inner % blocks;
    tile = inner / blocks / parts;
    strip = inner / blocks % parts * block_strips;
    job = 0;
#pragma unroll
    for (int j = 1; j < kMostJobs; ++j)
      if (j < launch.job_count && tile >= launch.jobs[j].first_tile) job = j;
    tile -= launch.jobs[job].first_tile;
  }
};

template <Form kForm, int kGroupInputs, typename Tile>
__global__ void __launch_bounds__(Int8Shape<kForm, kGroupInputs, Tile>::kThreads,
                                  Int8Shape<kForm, kGroupInputs, Tile>::kBlocks)
    linear_int8_tile(const __grid_constant__ Int8Launch launch) {
  using Shape = Int8Shape<kForm, kGroupInputs, Tile>;
  extern __shared__ __align__(128) std::uint8_t int8_ring[];
  begin_next();
  wait_for_earlier();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const Int8Place place(launch, Shape::kBlockStrips);
  const JobView& job = launch.jobs[place.job];
  const std::uint32_t base = shared_address(int8_ring);
  const auto first = static_cast<std::size_t>(place.row_block * Shape::kRows);
  const auto chunk_step = static_cast<std::size_t>(launch.padded_rows);
  const std::uint8_t* const tile = job.weight + static_cast<std::size_t>(place.tile) *
                                                    static_cast<std::size_t>(launch.chunks) *
                                                    (kTileStrips * strip_bytes(kForm));
  const auto* codes = reinterpret_cast<const std::uint8_t*>(launch.codes) + first * kChunk;
  const auto* scales = reinterpret_cast<const std::uint8_t*>(launch.scales) + first * 8;
  int ahead = 0, ahead_slot = 0;
  const auto fetch = [&] {  // one stage
    const std::uint32_t stage = base + ahead_slot * Shape::kStageBytes;
#pragma unroll
    for (int c = 0; c < Shape::kChunks; ++c) {
      if (ahead >= launch.chunks) break;
      const std::uint32_t to = stage + c * Shape::kChunkBytes;
      copy_strips<Shape::kBlockStrips, strip_bytes(kForm), Shape::kThreads>(
          to,
          tile + static_cast<std::size_t>(strip_place(kForm, launch.chunks, place.strip, ahead)) * strip_bytes(kForm),
          strip_step(kForm, launch.chunks, ahead) * strip_bytes(kForm), thread);
      copy_bytes<Shape::kCodeBytes, Shape::kThreads>(to + Shape::kWeightBytes, codes, thread);
#pragma unroll
      for (int u = 0; u < Shape::kGroups; ++u)
        copy_bytes<Shape::kScaleBytes, Shape::kThreads>(
            to + Shape::kWeightBytes + Shape::kCodeBytes + u * Shape::kScaleBytes, scales + u * chunk_step * 8, thread);
      codes += chunk_step * kChunk;
      scales += chunk_step * 8 * Shape::kGroups;
      ++ahead;
    }
    ahead_slot = ahead_slot + 1 == Shape::kStages ? 0 : ahead_slot + 1;
    close_copies();
  };
  for (int i = 0; i + 1 < Shape::kStages; ++i) fetch();
  const int first_strip = warp % Tile::kFeatureWarps * Shape::kStrips;
  const int first_row = warp / Tile::kFeatureWarps * Shape::kWarpRows;
  float sum[Shape::kStrips][4 * Tile::kEights] = {};
  int slot = 0;
  for (int left = launch.chunks; left > 0; left -= Shape::kChunks) {
    wait_for_older_copies<Shape::kStages - 2>();
    __syncthreads();
    fetch();
    const std::uint32_t stage = base + slot * Shape::kStageBytes;
    slot = slot + 1 == Shape::kStages ? 0 : slot + 1;
    const auto multiply = [&](int c) {
      multiply_int8<kForm, kGroupInputs, Tile>(stage + c * Shape::kChunkBytes, first_strip, first_row, lane, sum);
    };
    if (Shape::kChunks <= 2 || left >= Shape::kChunks) {  // chunks come in pairs
#pragma unroll(Shape::kStrips == 1 ? Shape::kChunks : 1)  // registers
      for (int c = 0; c < Shape::kChunks; ++c) multiply(c);
    } else {
      for (int c = 0; c < left; ++c) multiply(c);
    }
  }
#pragma unroll
  for (int s = 0; s < Shape::kStrips; ++s)
    store_int8<Tile::kEights>(job, sum[s],
                              place.tile * kTileFeatures + (place.strip + first_strip + s) * kStripFeatures, lane,
                              place.row_block * Shape::kRows + first_row, launch.rows);
}

using Int8ManyRows = Int8Tile<2, 4, 4, 2, 2, 2>;
using Int8FewRows = Int8Tile<1, 4, 4, 1, 4, 2>;
using Int8FewFeatures = Int8Tile<1, 2, 2, 2, 4, 2>;

template <Form kForm, int kGroupInputs, typename Tile>
Int8Kernel int8_kernel(const char* name) {
  using Shape = Int8Shape<kForm, kGroupInputs, Tile>;
  return {linear_int8_tile<kForm, kGroupInputs, Tile>,
          name,
          Shape::kThreads,
          Shape::kSharedBytes,
          Shape::kRows,
          Shape::kBlockStrips};
}

template <Form kForm, int kGroupInputs>
const Int8Kernels& int8_kernels() {
  static const Int8Kernels kernels = {
      int8_kernel<kForm, kGroupInputs, Int8ManyRows>("linear, int8, many rows"),
      int8_kernel<kForm, kGroupInputs, Int8FewRows>("linear, int8, few rows"),
      int8_kernel<kForm, kGroupInputs, Int8FewFeatures>("linear, int8, few rows and features")};
  return kernels;
}

}  // namespace steadfast::cuda
