// The 16-bit floats: every one of the 65,536 bit patterns, and rounding against a reference computed in double.
#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace steadfast {
namespace {

// A float of `mantissa_bits` and exponents [min_exponent, max_exponent] nearest to `value`, ties to even; in double, so
// every step is exact: the step between neighbours is a power of two, and std::nearbyint rounds ties to even.
double nearest(double value, int mantissa_bits, int min_exponent, int max_exponent) {
  if (value == 0 || std::isinf(value) || std::isnan(value)) return value;
  const int exponent = std::max(std::ilogb(value), min_exponent);
  const double step = std::ldexp(1.0, exponent - mantissa_bits);
  const double rounded = std::nearbyint(value / step) * step;
  const double limit = std::ldexp(1.0, max_exponent + 1);
  return std::fabs(rounded) >= limit ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

double nearest_f16(double value) { return nearest(value, 10, -14, 15); }
double nearest_bf16(double value) { return nearest(value, 7, -126, 127); }

// The value of an f16 by the definition of the format.
double value_of_f16(std::uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  if (exponent == 31) return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

// Equal as numbers and in sign, or both NaN.
bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

TEST(DType, EveryF16HasItsValueAndComesBack) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float value = f16_to_f32(bits);
    ASSERT_TRUE(same(value, value_of_f16(bits))) << std::hex << i;
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value)))) << std::hex << i;
      ASSERT_EQ(f32_to_f16(value) & 0x8000, bits & 0x8000) << std::hex << i;
    } else {
      ASSERT_EQ(f32_to_f16(value), bits) << std::hex << i;
    }
  }
}

TEST(DType, EveryBF16ComesBack) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float value = bf16_to_f32(bits);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), i << 16);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value)))) << std::hex << i;
    } else {
      ASSERT_EQ(f32_to_bf16(value), bits) << std::hex << i;
    }
  }
}

// Both conversions of one float against the reference.
void expect_nearest(float value) {
  ASSERT_TRUE(same(f16_to_f32(f32_to_f16(value)), nearest_f16(value))) << std::hexfloat << value;
  ASSERT_TRUE(same(bf16_to_f32(f32_to_bf16(value)), nearest_bf16(value))) << std::hexfloat << value;
}

TEST(DType, RoundsToNearestEvenAroundEveryF16) {
  for (std::uint32_t i = 0; i < 0x7C00; ++i) {
    const float low = f16_to_f32(static_cast<std::uint16_t>(i));
    const float high = i == 0x7BFF ? 65536.0f : f16_to_f32(static_cast<std::uint16_t>(i + 1));
    const float middle = (low + high) / 2;
    for (float value : {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      expect_nearest(value);
      expect_nearest(-value);
    }
  }
}

TEST(DType, RoundsToNearestEvenAroundEveryBF16) {
  for (std::uint32_t i = 0; i < 0x7F80; ++i) {
    const std::uint32_t middle = (i << 16) | 0x8000;
    for (std::uint32_t bits : {middle - 1, middle, middle + 1}) {
      expect_nearest(std::bit_cast<float>(bits));
      expect_nearest(-std::bit_cast<float>(bits));
    }
  }
}

TEST(DType, RoundsRandomBitPatternsToNearestEven) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000000; ++i) expect_nearest(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
}

// e4m3 by its definition (OCP 8-bit floating point, table 1): 4 exponent bits, bias 7, 3 mantissa bits.
double defined_f8(int code) {
  const int exponent = (code >> 3) & 15, mantissa = code & 7;
  const double magnitude = exponent == 0 ? mantissa * 0x1p-9 : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

TEST(DType, EveryF8ComesBack) {
  for (int code = 0; code < 256; ++code) {
    const float value = f8e4m3_to_f32(static_cast<std::uint8_t>(code));
    if ((code & 0x7F) == 0x7F) {
      EXPECT_TRUE(std::isnan(value)) << code;
      EXPECT_EQ(f32_to_f8e4m3(value) & 0x7F, 0x7F) << code;
      continue;
    }
    EXPECT_EQ(static_cast<double>(value), defined_f8(code)) << code;
    EXPECT_EQ(f32_to_f8e4m3(value), code);
  }
}

TEST(DType, RoundsToNearestEvenAroundEveryF8) {
  for (int code = 0; code < 0x7E; ++code) {
    const auto low = static_cast<float>(defined_f8(code)), high = static_cast<float>(defined_f8(code + 1));
    const float middle = (low + high) / 2;
    const int even = code % 2 == 0 ? code : code + 1;
    EXPECT_EQ(f32_to_f8e4m3(middle), even) << code;
    EXPECT_EQ(f32_to_f8e4m3(std::nextafter(middle, 0.0f)), code) << code;
    EXPECT_EQ(f32_to_f8e4m3(std::nextafter(middle, 1e9f)), code + 1) << code;
    EXPECT_EQ(f32_to_f8e4m3(-middle), even | 0x80) << code;
  }
  for (const float large : {448.0f, 449.0f, 1e30f, INFINITY}) EXPECT_EQ(f32_to_f8e4m3(large), 0x7E) << large;
  EXPECT_EQ(f32_to_f8e4m3(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(DType, AnF8RowsScaleIsTheLeastPowerOfTwoThatHoldsIt) {
  std::mt19937 random(2);
  for (int i = 0; i < 100000; ++i) {
    const float amax = std::fabs(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    const float scale = f8e4m3_scale(amax);
    if (!std::isfinite(amax)) {
      EXPECT_TRUE(std::isnan(scale)) << amax;
      continue;
    }
    int exponent = 0;
    ASSERT_EQ(std::frexp(scale, &exponent), 0.5f) << amax;
    ASSERT_LE(amax / scale, 448.0f) << amax;
    if (amax > 0 && scale > 0x1p-126f) ASSERT_GT(amax / (scale / 2), 448.0f) << amax;
  }
  EXPECT_EQ(f8e4m3_scale(0), 1.0f);
  EXPECT_EQ(f8e4m3_scale(448), 1.0f);
  EXPECT_EQ(f8e4m3_scale(448.5f), 2.0f);
}

TEST(DType, TableAgreesWithTheTypes) {
  EXPECT_EQ(info(DType::kF32).name, "F32");
  EXPECT_EQ(info(DType::kBF16).block_bytes, 2u);
  EXPECT_EQ(info(DType::kF8E8M0).name, "F8_E8M0");
  EXPECT_EQ(info(DType::kI64).block_bytes, 8u);
  EXPECT_EQ(info(DType::kQ4_0).block_bytes, 2u + 16u);       // a scale, 32 nibbles
  EXPECT_EQ(info(DType::kQ4_1).block_bytes, 2u + 2u + 16u);  // a scale, a minimum, 32 nibbles
  EXPECT_EQ(info(DType::kQ8_0).block_bytes, 2u + 32u);       // a scale, 32 bytes
  for (DType dtype : {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0}) EXPECT_EQ(info(dtype).block_elements, 32u);
}

}  // namespace
}  // namespace steadfast
