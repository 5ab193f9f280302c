// Where a position's key or value lies inside a page's part of one head (kv_pieces.h states the layout), and e4m3
// expanded to bf16: exact, in registers, two values at a time.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/kv_pieces.h"

namespace steadfast::cuda {

constexpr int kTile = 64;  // positions

// kBytes: bytes of 64 dims: 128 (bf16) or 64 (fp8).
template <int kBytes>
__device__ __forceinline__ int swizzle(int position) {
  return kBytes == 128 ? position & 7 : (position >> 1) & 3;
}

// Byte offset of 16-byte piece `piece` (0 .. 3 or 7) of block `block` of a position, from the head's part of its page.
template <int kBytes>
__device__ __forceinline__ std::ptrdiff_t kv_offset(int page_positions, int dim, int within, int block, int piece) {
  const int tile = min(page_positions, kTile), at = within & (tile - 1);
  const std::ptrdiff_t base = static_cast<std::ptrdiff_t>(within - at) * (dim * kBytes / 64);
  const int rest = dim - block * 64;
  const int from = block * tile * kBytes;
  return base + from +
         (rest >= 64 ? at * kBytes + ((piece ^ swizzle<kBytes>(at)) << 4) : at * (rest * kBytes / 64) + (piece << 4));
}

// Byte offset of a head's part of a page.
template <int kBytes>
__device__ __forceinline__ std::ptrdiff_t part_offset(int page, int kv_heads, int head, int page_positions, int dim) {
  return (static_cast<std::ptrdiff_t>(page) * kv_heads + head) * page_positions * (dim * kBytes / 64);
}

__device__ __forceinline__ std::uint32_t multiply_bf16x2(std::uint32_t x, std::uint32_t y) {
  std::uint32_t z;
  asm("{.reg .b32 zero; mov.b32 zero, 0x80008000; fma.rn.bf16x2 %0, %1, %2, zero;}" : "=r"(z) : "r"(x), "r"(y));
  return z;
}

// The bits of e4m3 read as bf16 are the value times 2^-120: what mends that, times a scale that is a power of two; in
// two factors where one would overflow (`large`).
struct ExpandScale {
  static constexpr std::uint32_t kLargest = 134u << 23;  // 2^7 as a float
  static constexpr std::uint32_t kOne = 0x7B807B80u;     // scale 1: 2^120
  std::uint32_t first, second = 0;
  __device__ __forceinline__ ExpandScale(std::uint32_t scale_bits, bool large) {
    const std::uint32_t low = large ? min(scale_bits, kLargest) : scale_bits;
    first = __byte_perm(low, low, 0x3232) + 0x3C003C00u;
    if (large) second = (((scale_bits - low) >> 16) + 0x3F80u) * 0x00010001u;
  }
};

// The four e4m3 bytes of a word: low takes bytes 0 and 2, high bytes 1 and 3, as pairs of bf16 (lower byte in the lower
// half), times the factor. Exact, subnormals included.
__device__ __forceinline__ void expand_e4m3(std::uint32_t word, std::uint32_t factor, std::uint32_t& low,
                                            std::uint32_t& high) {
  constexpr std::uint32_t kSign = 0x80008000u, kRest = 0x07F007F0u;
  low = multiply_bf16x2(((word << 8) & kSign) | ((word << 4) & kRest), factor);
  high = multiply_bf16x2((word & kSign) | ((word >> 4) & kRest), factor);
}

// The piece of which `row` is a row: pieces ascend in first_row.
__device__ __forceinline__ int piece_of_row(const KvPiece* pieces, int count, int row) {
  int low = 0, high = count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (pieces[middle].first_row <= row ? low : high) = middle;
  }
  return low;
}

}  // namespace steadfast::cuda
