// Float32 sums of matrix instructions as operands of the next: rounded to bf16, or as two bf16, high and low. Lane = 4
// g + t: a sum's values are (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1); two neighbouring sums, rounded, are an A
// operand.
#pragma once

#include "backend/cuda/device/mma.h"

namespace steadfast::cuda {

// Two values rounded to bf16, x in the low half.
__device__ __forceinline__ std::uint32_t pack_bf16(float x, float y) {
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0,%1,%2;" : "=r"(packed) : "f"(y), "f"(x));
  return packed;
}

__device__ __forceinline__ float low_half(std::uint32_t packed) { return __uint_as_float(packed << 16); }
__device__ __forceinline__ float high_half(std::uint32_t packed) { return __uint_as_float(packed & 0xFFFF0000u); }

// x, y as the sum of two bf16 each: what remains is below 2^-17 of them.
__device__ __forceinline__ void split_bf16(float x, float y, std::uint32_t& high, std::uint32_t& low) {
  high = pack_bf16(x, y);
  low = pack_bf16(x - low_half(high), y - high_half(high));
}

// Two sums side by side as an A operand, high and low.
__device__ __forceinline__ void split_operand(const float (&left)[4], const float (&right)[4], std::uint32_t (&high)[4],
                                              std::uint32_t (&low)[4]) {
  split_bf16(left[0], left[1], high[0], low[0]);
  split_bf16(left[2], left[3], high[1], low[1]);
  split_bf16(right[0], right[1], high[2], low[2]);
  split_bf16(right[2], right[3], high[3], low[3]);
}

}  // namespace steadfast::cuda
