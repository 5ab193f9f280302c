// Element types as checkpoints name them, and the conversions between 16-bit and 32-bit floats.
// Block types hold 32 elements each (GGUF; model-spec section 4.2); the others are plain arrays.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace steadfast {

enum class DType : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kBool,
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kQ4_0,
  kQ4_1,
  kQ8_0,
};

struct DTypeInfo {
  std::string_view name;
  std::size_t block_elements;  // elements in a block: 1 for plain types
  std::size_t block_bytes;
};

const DTypeInfo& info(DType dtype);

inline float bf16_to_f32(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// Round to nearest even; NaN stays NaN.
inline std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);  // round to nearest even

// e4m3 (OCP FP8, the form without infinities): 448 is the largest magnitude, 0x7F and 0xFF are NaN.
float f8e4m3_to_f32(std::uint8_t bits);
// Round to nearest even; a magnitude above 448 gives 448. NaN stays NaN.
std::uint8_t f32_to_f8e4m3(float value);
// The scale of a row of e4m3 whose largest magnitude is `amax`: the least power of two, not below 2^-126, that keeps
// amax / scale at or below 448; 1 for zeros, NaN where amax is not finite.
float f8e4m3_scale(float amax);

}  // namespace steadfast
