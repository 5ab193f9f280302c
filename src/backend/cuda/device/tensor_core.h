// Matrix instructions m16n8k16 (bf16 in, float32 sums) and the moves that feed them: one warp's fragments. Lane = 4 g +
// t: a sum's values are (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1); two neighbouring sums, rounded, are an A operand.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace steadfast::cuda {

// sum += a b.
__device__ __forceinline__ void mma_bf16(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                         std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Not moved across barriers and waits, which are volatile too.
// Four 8x8 tiles of 16-bit values; lane l gives the address of row l % 8 of tile l / 8.
__device__ __forceinline__ void load_tiles(std::uint32_t (&tile)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
               : "r"(address));
}

__device__ __forceinline__ void load_tiles_transposed(std::uint32_t (&tile)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
               : "r"(address));
}

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
