// Quantising rows: codes within their limits, values within half a step, exact sums; one digit and two.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernel_cases.h"

namespace steadfast::test {
namespace {

struct Quantised {
  std::vector<std::int8_t> codes, low;
  std::vector<float> scales;
  std::vector<std::int32_t> sums;
  int code(std::size_t k) const { return low.empty() ? codes[k] : 256 * codes[k] + low[k]; }
  bool operator==(const Quantised&) const = default;
};

Quantised quantised(const cpu::Kernels& kernels, const std::vector<float>& x, int group, bool fine) {
  Quantised q;
  q.codes.resize(x.size());
  if (fine) q.low.resize(x.size());
  q.scales.resize(x.size() / static_cast<std::size_t>(group));
  q.sums.resize(q.scales.size());
  kernels.quantise(x.data(), static_cast<int>(x.size()), group, q.codes.data(), fine ? q.low.data() : nullptr,
                   q.scales.data(), q.sums.data());
  return q;
}

// |x - scale * code|: half a step for the rounding; limit / amax, x * that, and amax / limit round besides.
void expect_close(const std::vector<float>& x, const Quantised& q, int group, bool fine) {
  const int limit = fine ? 127 * 256 : 127;
  for (std::size_t g = 0; g < q.scales.size(); ++g) {
    std::int32_t sum = 0;
    const double step = q.scales[g];
    for (std::size_t k = g * static_cast<std::size_t>(group); k < (g + 1) * static_cast<std::size_t>(group); ++k) {
      sum += q.code(k);
      ASSERT_LE(std::abs(q.code(k)), limit);
      ASSERT_NEAR(step * q.code(k), x[k], step * (0.5 + 4 * kRoundoff * limit)) << "x[" << k << "], scale " << step;
    }
    ASSERT_EQ(sum, q.sums[g]);
  }
}

void check_everywhere(const std::vector<float>& x, int group) {
  for (const bool fine : {false, true}) {
    const auto expected = quantised(*machine_kernels().front(), x, group, fine);
    expect_close(x, expected, group, fine);
    for (const cpu::Kernels* kernels : machine_kernels())
      ASSERT_TRUE(quantised(*kernels, x, group, fine) == expected)
          << kernels->name << (fine ? ", two digits" : ", one digit");
  }
}

TEST(Quantise, IsWithinHalfAStepOnRandomRows) {
  Dice dice(1);
  for (const int group : {32, 64, 128}) {
    for (const float spread : {1e-30f, 1e-3f, 1.0f, 1e5f, 1e30f}) {
      auto x = normal_floats(dice, 1024, spread);
      x[7] = 40 * spread;  // an outlier takes its group's scale alone
      check_everywhere(x, group);
    }
  }
}

// The largest value is 127 * 256, so that x are the codes themselves: every one of them, and every tie between digits.
TEST(Quantise, HoldsEveryCodeOfTwoDigits) {
  constexpr int kLimit = 127 * 256, kGroup = 32;
  std::vector<float> x;
  for (int code = -kLimit; code <= kLimit;) {
    x.push_back(static_cast<float>(kLimit));
    for (int i = 1; i < kGroup; ++i) x.push_back(static_cast<float>(std::min(code++, kLimit)));
  }
  for (const cpu::Kernels* kernels : machine_kernels()) {
    const auto q = quantised(*kernels, x, kGroup, true);
    for (std::size_t k = 0; k < x.size(); ++k) ASSERT_EQ(q.code(k), static_cast<int>(x[k])) << kernels->name;
  }
  check_everywhere(x, kGroup);
}

TEST(Quantise, HoldsEveryCodeOfOneDigitAndRoundsTiesToEven) {
  std::vector<float> x(320, 127.0f);
  for (std::size_t k = 0; k < 255; ++k) x[k / 31 * 32 + k % 31] = static_cast<float>(k) - 127;
  for (const cpu::Kernels* kernels : machine_kernels()) {
    const auto q = quantised(*kernels, x, 32, false);
    for (std::size_t k = 0; k < x.size(); ++k) ASSERT_EQ(q.code(k), static_cast<int>(x[k])) << kernels->name;
  }
  x.assign(32, 127.0f);
  for (std::size_t k = 0; k < 20; ++k) x[k] = static_cast<float>(k) - 9.5f;
  for (const cpu::Kernels* kernels : machine_kernels()) {
    const auto q = quantised(*kernels, x, 32, false);
    for (std::size_t k = 0; k < 20; ++k) ASSERT_EQ(q.code(k), static_cast<int>(std::nearbyint(x[k]))) << kernels->name;
  }
}

TEST(Quantise, ZerosGiveZeroCodesAndScale) {
  std::vector<float> x(96, 0.0f);
  x[3] = -0.0f;
  x[40] = 2;  // the groups beside stay zero
  for (const bool fine : {false, true}) {
    for (const cpu::Kernels* kernels : machine_kernels()) {
      const auto q = quantised(*kernels, x, 32, fine);
      for (const std::size_t g : {0u, 2u}) {
        EXPECT_EQ(q.scales[g], 0.0f);
        EXPECT_EQ(q.sums[g], 0);
        for (std::size_t k = 32 * g; k < 32 * (g + 1); ++k) EXPECT_EQ(q.code(k), 0);
      }
      EXPECT_EQ(q.code(40), fine ? 127 * 256 : 127);
    }
  }
}

// Values so small that limit / max overflows: every code stays legal and the error below 2^-100.
TEST(Quantise, VanishingValuesStayHarmless) {
  std::vector<float> x(32, 0.0f);
  for (const float tiny : {1e-36f, 1e-38f, 1e-42f, std::numeric_limits<float>::denorm_min()}) {
    x[0] = tiny, x[1] = -tiny;
    for (const bool fine : {false, true}) {
      const auto expected = quantised(*machine_kernels().front(), x, 32, fine);
      for (std::size_t k = 0; k < 32; ++k) {
        EXPECT_LE(std::abs(expected.code(k)), fine ? 127 * 256 : 127);
        EXPECT_NEAR(static_cast<double>(expected.scales[0]) * expected.code(k), x[k], 0x1p-100);
      }
      for (const cpu::Kernels* kernels : machine_kernels())
        EXPECT_TRUE(quantised(*kernels, x, 32, fine) == expected) << kernels->name;
    }
  }
}

}  // namespace
}  // namespace steadfast::test
