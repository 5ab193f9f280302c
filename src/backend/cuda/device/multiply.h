// A warp's product of strips of weights and rows in shared memory, by mma.m16n8k16 (linear_plan.h: how both lie).
#pragma once

#include "backend/cuda/device/fragments.h"

namespace steadfast::cuda {

// The rows' fragments of one load: a k16 step of kRows rows, or two steps of 8 rows.
template <int kRows>
struct RowFragments {
  static constexpr int kSteps = kRows == 8 ? 2 : 1;
  static constexpr int kVectors = kRows == 8 ? 1 : kRows / 16;
  std::uint32_t b[kVectors][4];

  // From a chunk's rows at x_at ([kRows][128 bytes], pieces swizzled).
  __device__ void load(std::uint32_t x_at, int index, int lane) {
    const int row = lane & 7, matrix = lane >> 3;
    if constexpr (kRows == 8) {
      load_matrices(b[0], x_at + row * kChunkRowBytes + ((index * 4 + matrix) ^ row) * 16);
    } else {
      const int piece = (index * 2 + (matrix & 1)) ^ row;
#pragma unroll
      for (int j = 0; j < kVectors; ++j)
        load_matrices(b[j], x_at + (j * 16 + (matrix >> 1) * 8 + row) * kChunkRowBytes + piece * 16);
    }
  }
};

// sums += the strips' chunks times the rows'. row_lane: the lane, but for the row that it addresses (lane & 7). Chunks
// lie strip_step and x_step bytes apart. Loads run one step, and one chunk of weights, ahead of the sums.
template <Form kForm, int kRows, int kStrips, int kChunks>
__device__ void multiply(const std::uint32_t (&strip_at)[kStrips], std::uint32_t strip_step, std::uint32_t x_at,
                         std::uint32_t x_step, int lane, int row_lane, float (&sum)[kStrips][kRows / 2]) {
  using Rows = RowFragments<kRows>;
  constexpr int kLoads = 4 / Rows::kSteps;  // a chunk
  Fragments<kForm> weights[2][kStrips];
  Rows rows[2];
#pragma unroll
  for (int s = 0; s < kStrips; ++s) weights[0][s].load(strip_at[s], lane);
  rows[0].load(x_at, 0, row_lane);
  for_steps<0, kChunks * 4>([&](auto constant) {
    constexpr int kStep = decltype(constant)::value % 4, kIn = decltype(constant)::value / 4;
    constexpr int kLoad = decltype(constant)::value / Rows::kSteps;
    if constexpr (kStep == 0 && kIn + 1 < kChunks) {
#pragma unroll
      for (int s = 0; s < kStrips; ++s) weights[(kIn + 1) % 2][s].load(strip_at[s] + (kIn + 1) * strip_step, lane);
    }
    if constexpr (kStep % Rows::kSteps == 0 && kLoad + 1 < kChunks * kLoads)
      rows[(kLoad + 1) % 2].load(x_at + (kLoad + 1) / kLoads * x_step, (kLoad + 1) % kLoads, row_lane);
    std::uint32_t a[kStrips][4];
#pragma unroll
    for (int s = 0; s < kStrips; ++s) weights[kIn % 2][s].template expand<kStep>(a[s]);
    const auto& b = rows[kLoad % 2].b;
    if constexpr (kRows == 8) {
#pragma unroll
      for (int s = 0; s < kStrips; ++s) mma_bf16(sum[s], a[s], b[0][kStep % 2 * 2], b[0][kStep % 2 * 2 + 1]);
    } else {
#pragma unroll
      for (int j = 0; j < Rows::kVectors; ++j)
#pragma unroll
        for (int s = 0; s < kStrips; ++s) {
          mma_bf16(sum[s] + j * 8, a[s], b[j][0], b[j][1]);
          mma_bf16(sum[s] + j * 8 + 4, a[s], b[j][2], b[j][3]);
        }
    }
  });
}

}  // namespace steadfast::cuda
