// The linear kernels against float64, from the codes alone. Bounds: gamma_n times the sum of the terms' sizes, n the
// float32 roundings that a term passes through; against unquantised rows, half a step of each row's scale besides.
#include <gtest/gtest.h>

#include <cmath>

#include "kernel_cases.h"

namespace steadfast::test {
namespace {

constexpr int kOut = 21, kRows = 3;

struct Reference {
  double exact = 0, bound = 0;
};

// x as it is (f32, bf16): one fma makes the weight, one adds the product, in `in` steps.
Reference plain_reference(const MemoryAffine& w, int feature, const float* x, bool round_bf16) {
  Reference r;
  double size = 0;
  for (int k = 0; k < w.in(); ++k) {
    const int g = k / w.group();
    const double code = w.code(feature, k), scale = w.scale(feature, g), bias = w.bias(feature, g);
    if (round_bf16) {
      const float expanded = std::fma(static_cast<float>(code), w.scale(feature, g), w.bias(feature, g));
      const double weight = bf16_to_f32(f32_to_bf16(expanded));
      r.exact += weight * static_cast<double>(x[k]);
      size += std::fabs(weight * static_cast<double>(x[k]));
    } else {
      r.exact += (code * scale + bias) * static_cast<double>(x[k]);
      size += std::fabs((code * scale + bias) * static_cast<double>(x[k]));
    }
  }
  r.bound = gamma_n(w.in() + 1) * size;
  return r;
}

// Quantised x: for each group the exact dot is rounded to float, scaled by a rounded product, added; the bias likewise.
Reference integer_reference(const MemoryAffine& w, bool symmetric, int feature, const InputRows& x, int row) {
  Reference r;
  double size = 0;
  for (int g = 0; g < w.groups(); ++g) {
    double dot = 0, sum = 0;
    const double zero = symmetric ? 1 << (w.bits() - 1) : 0;
    for (int k = g * w.group(); k < (g + 1) * w.group(); ++k) {
      const auto at = static_cast<std::size_t>(row * w.in() + k);
      const double code = x.low.empty() ? x.codes[at] : 256.0 * x.codes[at] + x.low[at];
      dot += (w.code(feature, k) - zero) * code;
      sum += code;
    }
    const double row_scale = x.scales[static_cast<std::size_t>(row * w.groups() + g)];
    const double first = dot * row_scale * static_cast<double>(w.scale(feature, g));
    const double second = symmetric ? 0 : sum * row_scale * static_cast<double>(w.bias(feature, g));
    r.exact += first + second;
    size += std::fabs(first) + std::fabs(second);
  }
  r.bound = gamma_n(2 * w.groups() + 2) * size;
  return r;
}

// What quantising x costs at most: |w| times half a step of the scale, and the roundings of its making.
double step_cost(const MemoryAffine& w, int feature, const InputRows& x, int row) {
  double cost = 0;
  const double limit = x.low.empty() ? 127 : 127 * 256;
  for (int k = 0; k < w.in(); ++k) {
    const int g = k / w.group();
    const double weight =
        w.code(feature, k) * static_cast<double>(w.scale(feature, g)) + static_cast<double>(w.bias(feature, g));
    cost += std::fabs(weight) * static_cast<double>(x.scales[static_cast<std::size_t>(row * w.groups() + g)]);
  }
  return cost * (0.5 + 4 * kRoundoff * limit);
}

TEST(LinearAccuracy, IsWithinTheBoundsOfItsRoundings) {
  Dice dice(1);
  for (const AffineCase& c : affine_cases()) {
    SCOPED_TRACE(c.name());
    const int in = 2 * c.group;
    const MemoryAffine reader(dice, kOut, in, c.bits, c.group, c.scale_dtype, c.symmetric);
    const auto weight = pack(reader);
    const auto x = normal_floats(dice, static_cast<std::size_t>(kRows * in));
    const cpu::Kernels& kernels = *machine_kernels().back();
    for (const Mode mode : kModes) {
      const InputRows rows(kernels, x, kRows, in, c.group, mode);
      std::vector<float> y(static_cast<std::size_t>(kRows * (kOut + kSlack)));
      multiply(kernels, packed(*weight).affine(), rows, mode, {0, kRows, 0, 2}, y);
      for (int row = 0; row < kRows; ++row) {
        for (int feature = 0; feature < kOut; ++feature) {
          const double got = y[static_cast<std::size_t>(row * (kOut + kSlack) + feature)];
          const bool integers = mode == Mode::kInt8 || mode == Mode::kFine;
          const float* plain = rows.plain.data() + row * in;
          const Reference r = integers ? integer_reference(reader, c.symmetric, feature, rows, row)
                                       : plain_reference(reader, feature, plain, mode == Mode::kBF16);
          ASSERT_NEAR(got, r.exact, r.bound) << "mode " << static_cast<int>(mode) << ", feature " << feature;
          if (!integers) continue;
          const Reference whole = plain_reference(reader, feature, plain, false);
          ASSERT_NEAR(got, whole.exact, r.bound + step_cost(reader, feature, rows, row))
              << "mode " << static_cast<int>(mode);
        }
      }
    }
  }
}

TEST(LinearAccuracy, LargestCodesDoNotOverflow) {
  Dice dice(2);
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const float sign : {1.0f, -1.0f}) {
      MemoryAffine reader(dice, 16, 256, bits, 128, DType::kF32, false);
      for (int row = 0; row < 16; ++row) {
        for (int k = 0; k < 256; ++k) reader.code(row, k) = static_cast<std::uint8_t>((1 << bits) - 1);
        for (int g = 0; g < 2; ++g) reader.scale(row, g) = 1, reader.bias(row, g) = 0;
      }
      const auto weight = pack(reader);
      const std::vector<float> x(256, sign);
      for (const cpu::Kernels* kernels : machine_kernels()) {
        for (const Mode mode : kModes) {
          std::vector<float> y(16 + kSlack);
          multiply(*kernels, packed(*weight).affine(), {*kernels, x, 1, 256, 128, mode}, mode, {0, 1, 0, 1}, y);
          const double exact = sign * 256.0 * ((1 << bits) - 1);
          ASSERT_NEAR(y[3], exact, 300 * kRoundoff * std::fabs(exact)) << kernels->name << ", " << bits << " bits";
        }
      }
    }
  }
}

}  // namespace
}  // namespace steadfast::test
