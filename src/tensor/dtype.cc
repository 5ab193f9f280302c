// The table of element types, and IEEE half precision by integer arithmetic alone: the same bits on every machine.
#include "tensor/dtype.h"

#include <array>
#include <cmath>

#include "base/check.h"

namespace steadfast {

const DTypeInfo& info(DType dtype) {
  static constexpr std::array<DTypeInfo, 19> kInfo = {{
      {"F32", 1, 4},     {"F16", 1, 2},    {"BF16", 1, 2},   {"F64", 1, 8},     {"BOOL", 1, 1},
      {"U8", 1, 1},      {"I8", 1, 1},     {"U16", 1, 2},    {"I16", 1, 2},     {"U32", 1, 4},
      {"I32", 1, 4},     {"U64", 1, 8},    {"I64", 1, 8},    {"F8_E4M3", 1, 1}, {"F8_E5M2", 1, 1},
      {"F8_E8M0", 1, 1}, {"Q4_0", 32, 18}, {"Q4_1", 32, 20}, {"Q8_0", 32, 34},
  }};
  const auto index = static_cast<std::size_t>(dtype);
  CHECK(index < kInfo.size(), "dtype {}", index);
  return kInfo[index];
}

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0x1Fu) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float value = static_cast<float>(mantissa) * 0x1p-24f;  // zero or subnormal: exact
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
}

std::uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 aligns the mantissa, in round to nearest even
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u));
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u) - (112u << 23);
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

float f8e4m3_to_f32(std::uint8_t bits) {
  const std::uint32_t sign = (bits & 0x80u) << 24;
  const std::uint32_t magnitude = bits & 0x7Fu;
  if (magnitude == 0x7Fu) return std::bit_cast<float>(sign | 0x7FC00000u);
  const float value = std::bit_cast<float>(magnitude << 20) * 0x1p120f;  // subnormals too: exact
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
}

std::uint8_t f32_to_f8e4m3(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint8_t>((bits >> 24) & 0x80u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint8_t>(sign | 0x7Fu);
  if (magnitude >= 0x43E00000u) return static_cast<std::uint8_t>(sign | 0x7Eu);  // 448
  if (magnitude < 0x3C800000u) {  // below 2^-6: adding 2^14 aligns the subnormal's last bit, 2^-9
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14f;
    return static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x46800000u));
  }
  const std::uint32_t rounded = magnitude + 0x7FFFFu + ((magnitude >> 20) & 1u) - (120u << 23);
  return static_cast<std::uint8_t>(sign | (rounded >> 20));
}

float f8e4m3_scale(float amax) {
  if (!std::isfinite(amax)) return std::bit_cast<float>(0x7FC00000u);
  if (amax == 0) return 1.0f;
  int exponent = 0;
  const float fraction = std::frexp(amax, &exponent);  // amax = fraction * 2^exponent, 448 = 0.875 * 2^9
  exponent -= fraction <= 0.875f ? 9 : 8;
  return std::ldexp(1.0f, exponent < -126 ? -126 : exponent);
}

}  // namespace steadfast
