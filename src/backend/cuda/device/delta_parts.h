// What the delta rule's kernels share on the card (delta_kernels.h has the layouts).
#pragma once

#include "backend/cuda/delta_kernels.h"
#include "backend/cuda/device/copy_ring.h"
#include "backend/cuda/device/operands.h"

namespace steadfast::cuda {

// A unit's rows in shared memory: 16-byte pieces of a row are stored at index XOR row, so that eight rows' pieces lie
// in different banks.
template <int kPieces>
__device__ __forceinline__ int swizzled(int row, int piece) {
  if constexpr (kPieces >= 8) return row * kPieces + (piece ^ (row & 7));
  return row * kPieces + (piece ^ ((row >> 1) & 3));
}

// This block's heads and value dims.
struct Place {
  int head, key_head, part, first_dim;
};

// Rows [begin, end) of a slot, 16 bytes a thread; from: the chunk's row 0. Needs copy_ring.h's waits.
template <int kPieces, int kThreads>
__device__ __forceinline__ void copy_rows(std::uint32_t slot, const __nv_bfloat16* from, std::ptrdiff_t stride,
                                          int thread, int begin, int end) {
  constexpr int kAtOnce = kThreads / kPieces;
  const int first = thread / kPieces, piece = thread % kPieces;
  from += first * stride + piece * 8;
#pragma unroll
  for (int pass = 0; pass < (kChunk + kAtOnce - 1) / kAtOnce; ++pass) {
    const int row = first + pass * kAtOnce;
    if (row >= begin && row < end) copy_16(slot + 16 * static_cast<std::uint32_t>(swizzled<kPieces>(row, piece)), from);
    from += kAtOnce * stride;
  }
}

// sum += (high + low) b, each part of b likewise; the product of the low parts is left out.
__device__ __forceinline__ void multiply_split(float (&sum)[4], const std::uint32_t (&high)[4],
                                               const std::uint32_t (&low)[4], const uint4& b) {
  mma_bf16(sum, high, b.x, b.y);
  mma_bf16(sum, low, b.x, b.y);
  mma_bf16(sum, high, b.z, b.w);
}

// S' at the chunk's end, from u as an operand. solve: T's fragments; keys(row, piece): where 8 dims of a row lie in
// shared memory.
template <int kKeyDim, class Keys>
__device__ __forceinline__ void advance(float (&s)[kKeyDim / 8][4], const uint4* solve, const float* gate,
                                        const Keys& keys, const std::uint32_t (&u_high)[4],
                                        const std::uint32_t (&u_low)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, t = lane % 4;
  float v[2][4] = {};
#pragma unroll
  for (int tile = 0; tile < 2; ++tile) {
    multiply_split(v[tile], u_high, u_low, solve[tile * 32 + lane]);
    const float2 rest = *reinterpret_cast<const float2*>(gate + DeltaAux::kRest + tile * 8 + 2 * t);
    v[tile][0] *= rest.x;
    v[tile][1] *= rest.y;
    v[tile][2] *= rest.x;
    v[tile][3] *= rest.y;
  }
  std::uint32_t high[4], low[4];
  split_operand(v[0], v[1], high, low);
  const float whole = gate[DeltaAux::kWhole];
#pragma unroll
  for (int step = 0; step < kKeyDim / 16; ++step) {
    std::uint32_t k[4];
    load_matrices_transposed(k, keys(lane & 15, 2 * step + (lane >> 4)));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float(&sum)[4] = s[2 * step + half];
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i] *= whole;
      mma_bf16(sum, high, k[2 * half], k[2 * half + 1]);
      mma_bf16(sum, low, k[2 * half], k[2 * half + 1]);
    }
  }
}

// S of 16 value dims between the stream's state and a warp's registers.
template <int kKeyDim>
__device__ __forceinline__ void load_state(float (&s)[kKeyDim / 8][4], const float* state, int tile) {
  const auto* from =
      reinterpret_cast<const float4*>(state) + static_cast<std::ptrdiff_t>(tile) * kKeyDim * 4 + threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kKeyDim / 8; ++i) {
    const float4 four = __ldcs(from + i * 32);
    s[i][0] = four.x;
    s[i][1] = four.y;
    s[i][2] = four.z;
    s[i][3] = four.w;
  }
}

template <int kKeyDim>
__device__ __forceinline__ void store_state(const float (&s)[kKeyDim / 8][4], float* state, int tile) {
  auto* to = reinterpret_cast<float4*>(state) + static_cast<std::ptrdiff_t>(tile) * kKeyDim * 4 + threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kKeyDim / 8; ++i) __stcs(to + i * 32, float4{s[i][0], s[i][1], s[i][2], s[i][3]});
}

// u of the chunk's rows before `begin`, else zero; u: [16][value_dim], at this lane's value dims.
__device__ __forceinline__ void load_earlier_u(float (&to)[2][4], const float* u, int value_dim, int begin) {
  const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = i / 2 * 8 + 2 * t + i % 2;
    const float2 pair = row < begin ? *reinterpret_cast<const float2*>(u + row * value_dim) : float2{};
    to[i / 2][i % 2] = pair.x;
    to[i / 2][2 + i % 2] = pair.y;
  }
}

template <int kWarps>
__device__ Place place_of(const DeltaLayout& layout) {
  const int head = static_cast<int>(blockIdx.y), part = static_cast<int>(blockIdx.x);
  return {head, layout.key_head(head), part, head * layout.value_dim + part * kWarps * 16};
}

// The rows that the convolution of later rows needs; all blocks of a piece share the channels.
__device__ inline void keep_history(const DeltaLayout& layout, const DeltaUnit& unit, const float* x,
                                    std::ptrdiff_t x_stride, int taps, int thread, int threads) {
  const int blocks = static_cast<int>(gridDim.x * gridDim.y),
            block = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
  const int quads = layout.conv_width / 4, oldest = max(unit.start, unit.end - (taps - 1));
  for (int i = block * threads + thread; i < quads; i += blocks * threads)
    for (int row = oldest; row < unit.end; ++row)
      reinterpret_cast<float4*>(unit.conv)[((unit.position + row) & (kDeltaTaps - 1)) * quads + i] =
          *(reinterpret_cast<const float4*>(x + (unit.row + row) * x_stride) + i);
}

// The history of the convolution and, in an unfinished chunk, the rows' keys and gates.
template <int kKeyDim>
__device__ void keep(const DeltaRuleParams& p, const DeltaUnit& unit, const Place& place, int thread, int threads) {
  const DeltaLayout& layout = p.layout;
  const int begin = max(unit.start, 0);
  keep_history(layout, unit, p.x, p.x_stride, static_cast<int>(p.taps), thread, threads);
  if (unit.end == kChunk || place.part > 0) return;
  const auto* gate = reinterpret_cast<const float*>(
      p.aux + (static_cast<std::ptrdiff_t>(unit.index) * layout.value_heads + place.head) * DeltaAux::kBytes +
      DeltaAux::kGates);
  for (int row = begin + thread; row < unit.end; row += threads) {
    const auto at = static_cast<std::size_t>(place.head) * kChunk + static_cast<std::size_t>(row);
    unit.state[layout.c + at] = gate[DeltaAux::kLog + row];
    unit.state[layout.beta + at] = gate[DeltaAux::kBeta + row];
  }
  if (layout.value_head(place.key_head, 0) != place.head) return;
  constexpr int kPieces = kKeyDim / 8;
  auto* kept = reinterpret_cast<uint4*>(unit.state + layout.k) + place.key_head * kChunk * kPieces;
  for (int i = begin * kPieces + thread; i < unit.end * kPieces; i += threads)
    kept[i] = *reinterpret_cast<const uint4*>(p.rows + (unit.row + i / kPieces) * p.rows_stride + layout.key_width +
                                              place.key_head * kKeyDim + i % kPieces * 8);
}

}  // namespace steadfast::cuda
