// The quantiser's edge rule: zero of the grid moves so that the larger end of the group is a grid point, and so is
// zero.
#include "convert/quantise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace steadfast {
namespace {

constexpr float kLeastScale = 1e-7f;

void quantise_group(const float* values, int group, float levels, std::uint8_t* codes, float& scale, float& bias) {
  const auto [least, most] = std::minmax_element(values, values + group);
  const bool from_least = std::abs(*least) > std::abs(*most);
  scale = std::max((*most - *least) / levels, kLeastScale);
  if (!from_least) scale = -scale;
  const float edge = from_least ? *least : *most;
  const float steps = std::nearbyint(edge / scale);
  bias = 0;
  if (steps != 0) {
    scale = edge / steps;
    bias = edge;
  }
  for (int i = 0; i < group; ++i) {
    codes[i] = static_cast<std::uint8_t>(std::clamp(std::nearbyint((values[i] - bias) / scale), 0.0f, levels));
  }
}

}  // namespace

bool is_affine_bits(std::int64_t bits) { return bits >= 2 && bits <= 8 && bits != 7; }

bool is_affine_group(std::int64_t group) { return group == 32 || group == 64 || group == 128; }

void quantise_row(const float* values, int width, int bits, int group, std::uint8_t* codes, float* scales,
                  float* biases) {
  const auto levels = static_cast<float>((1 << bits) - 1);
  for (int at = 0; at < width; at += group) {
    quantise_group(values + at, group, levels, codes + at, *scales++, *biases++);
  }
}

void pack_codes(const std::uint8_t* codes, int width, int bits, std::byte* out) {
  for (int at = 0; at < width; at += 8) {  // eight codes are `bits` whole bytes
    std::uint64_t stream = 0;
    for (int i = 0; i < 8; ++i) stream |= static_cast<std::uint64_t>(codes[at + i]) << (i * bits);
    std::memcpy(out, &stream, static_cast<std::size_t>(bits));
    out += bits;
  }
}

std::byte* put_floats(DType dtype, const float* values, std::size_t count, std::byte* out) {
  if (dtype == DType::kF32) {
    std::memcpy(out, values, count * sizeof(float));
    return out + count * sizeof(float);
  }
  CHECK(dtype == DType::kF16 || dtype == DType::kBF16, "floats are not written as {}", info(dtype).name);
  for (std::size_t i = 0; i < count; ++i, out += 2) {
    const std::uint16_t bits = dtype == DType::kF16 ? f32_to_f16(values[i]) : f32_to_bf16(values[i]);
    std::memcpy(out, &bits, sizeof bits);
  }
  return out;
}

}  // namespace steadfast
