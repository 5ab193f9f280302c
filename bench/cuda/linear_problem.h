// Random weights and rows for the checks of linears, the same on host and card, and what a product must be: weights as
// the arithmetic expands them, in double. Everything follows from seeds.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "contract/random.h"
#include "quant/affine.h"

namespace steadfast::bench {

using contract::mix;
using contract::uniform;

inline float bf16(double x) {  // one rounding to nearest even
  const float nearest = static_cast<float>(x);
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  std::uint32_t kept = bits & 0xFFFF0000u;
  const double low = std::bit_cast<float>(kept), high = std::bit_cast<float>(kept + 0x10000u);
  const double down = std::fabs(x - low), up = std::fabs(high - x);
  if (up < down || (up == down && (kept >> 16 & 1) != 0)) kept += 0x10000u;
  return std::bit_cast<float>(kept);
}

class RandomAffine : public AffineReader {
 public:
  RandomAffine(int out, int in, int bits, int group, DType scales, std::uint64_t seed, float largest = 0.02f)
      : seed_(seed), largest_(largest) {
    out_ = out, in_ = in, bits_ = bits, group_ = group, scale_dtype_ = scales;
  }
  void read(int row, std::uint8_t* codes, float* scales, float* biases) const override {
    const unsigned mask = (1u << bits_) - 1;
    for (int k = 0; k < in_; k += 8) {
      const std::uint64_t word =
          mix(seed_ + static_cast<std::uint64_t>(row) * 1000003u + static_cast<std::uint64_t>(k));
      for (int i = 0; i < 8 && k + i < in_; ++i) codes[k + i] = static_cast<std::uint8_t>(word >> 8 * i & mask);
    }
    for (int g = 0; g < groups(); ++g) {
      const std::uint64_t key = seed_ * 31 + static_cast<std::uint64_t>(row) * 7919u + static_cast<std::uint64_t>(g);
      const float scale = largest_ / static_cast<float>(1 << bits_) * (1.25f + uniform(key) / 2);
      const float middle = static_cast<float>(mask) / 2 * (1 + uniform(key + 1) / 8);
      scales[g] = stored(scale);
      biases[g] = stored(-scale * middle);
    }
  }
  void release() const override {}

  // Row `row` as the kernels expand it: once rounded to bf16, from fp32 where scales are not bf16.
  std::vector<double> expanded(int row, bool through_float) const {
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(in_));
    std::vector<float> scales(static_cast<std::size_t>(groups())), biases(scales.size());
    read(row, codes.data(), scales.data(), biases.data());
    std::vector<double> weights(codes.size());
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const std::size_t g = k / static_cast<std::size_t>(group_);
      weights[k] = through_float ? bf16(std::fma(static_cast<float>(codes[k]), scales[g], biases[g]))
                                 : bf16(std::fma(static_cast<double>(codes[k]), scales[g], biases[g]));
    }
    return weights;
  }

 private:
  float stored(float x) const {
    if (scale_dtype_ == DType::kF16) return f16_to_f32(f32_to_f16(x));
    return scale_dtype_ == DType::kBF16 ? bf16(x) : x;
  }
  std::uint64_t seed_;
  float largest_;
};

// Rows with outliers, as activations have them.
inline std::vector<float> random_rows(int rows, int width, std::uint64_t seed) {
  std::vector<float> x(static_cast<std::size_t>(rows) * static_cast<std::size_t>(width));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = (uniform(seed + 2 * i) + uniform(seed + 2 * i + 1)) * (mix(seed + i) % 64 == 0 ? 9.0f : 1.0f);
  return x;
}

}  // namespace steadfast::bench
