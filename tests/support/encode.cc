// Encoders of test tensors; block layouts as in model-spec section 4.2.
#include "support/encode.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace steadfast::test {
namespace {

constexpr std::size_t kBlock = 32;

std::uint8_t code(float value, float scale, float least, float most) {
  const float scaled = scale == 0 ? 0 : value / scale;
  return static_cast<std::uint8_t>(static_cast<int>(std::clamp(std::nearbyint(scaled), least, most) - least));
}

void append_nibbles(Bytes& bytes, const std::array<std::uint8_t, kBlock>& codes) {
  for (std::size_t j = 0; j < kBlock / 2; ++j) {
    append(bytes, static_cast<std::uint8_t>(codes[j] | (codes[j + kBlock / 2] << 4)));
  }
}

float largest_magnitude(std::span<const float> block) {
  float largest = 0;
  for (const float value : block) largest = std::max(largest, std::abs(value));
  return largest;
}

void append_q4_0(Bytes& bytes, std::span<const float> block) {
  const std::uint16_t stored = f32_to_f16(largest_magnitude(block) / 7);
  std::array<std::uint8_t, kBlock> codes{};
  for (std::size_t j = 0; j < kBlock; ++j) codes[j] = code(block[j], f16_to_f32(stored), -8, 7);
  append(bytes, stored);
  append_nibbles(bytes, codes);
}

void append_q4_1(Bytes& bytes, std::span<const float> block) {
  const auto [least, most] = std::minmax_element(block.begin(), block.end());
  const std::uint16_t stored_scale = f32_to_f16((*most - *least) / 15);
  const std::uint16_t stored_least = f32_to_f16(*least);
  std::array<std::uint8_t, kBlock> codes{};
  for (std::size_t j = 0; j < kBlock; ++j) {
    codes[j] = code(block[j] - f16_to_f32(stored_least), f16_to_f32(stored_scale), 0, 15);
  }
  append(bytes, stored_scale);
  append(bytes, stored_least);
  append_nibbles(bytes, codes);
}

void append_q8_0(Bytes& bytes, std::span<const float> block) {
  const std::uint16_t stored = f32_to_f16(largest_magnitude(block) / 127);
  append(bytes, stored);
  for (const float value : block) {
    append(bytes, static_cast<std::int8_t>(static_cast<int>(code(value, f16_to_f32(stored), -128, 127)) - 128));
  }
}

}  // namespace

Bytes encode(DType dtype, std::span<const float> values) {
  CHECK(values.size() % info(dtype).block_elements == 0, "{} values are not whole blocks of {}", values.size(),
        info(dtype).name);
  Bytes bytes;
  for (std::size_t i = 0; i < values.size(); i += info(dtype).block_elements) {
    switch (dtype) {
      case DType::kF32:
        append(bytes, values[i]);
        break;
      case DType::kF16:
        append(bytes, f32_to_f16(values[i]));
        break;
      case DType::kBF16:
        append(bytes, f32_to_bf16(values[i]));
        break;
      case DType::kQ4_0:
        append_q4_0(bytes, values.subspan(i, kBlock));
        break;
      case DType::kQ4_1:
        append_q4_1(bytes, values.subspan(i, kBlock));
        break;
      case DType::kQ8_0:
        append_q8_0(bytes, values.subspan(i, kBlock));
        break;
      default:
        CHECK(false, "floats are not encoded as {}", info(dtype).name);
    }
  }
  return bytes;
}

}  // namespace steadfast::test
