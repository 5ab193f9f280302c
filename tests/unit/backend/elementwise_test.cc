// SiLU product, RMS norm and rounding to bf16: every size from 1 to 70 against double, and the same bits everywhere.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernel_cases.h"

namespace steadfast::test {
namespace {

constexpr int kLargest = 70;

// call(kernels, n, y): fills n floats of y. The scalar result, after the others were compared with it.
template <typename Call>
std::vector<float> on_every_table(int n, Call call) {
  std::vector<float> expected;
  for (const cpu::Kernels* kernels : machine_kernels()) {
    std::vector<float> y(static_cast<std::size_t>(n) + kSlack, kUntouched);
    call(*kernels, y.data());
    for (int i = 0; i < kSlack; ++i)
      EXPECT_EQ(y[static_cast<std::size_t>(n + i)], kUntouched) << kernels->name << " wrote behind " << n;
    if (expected.empty()) expected = y;
    EXPECT_TRUE(same_bits(y, expected)) << kernels->name << ", n " << n;
  }
  expected.resize(static_cast<std::size_t>(n));
  return expected;
}

TEST(SiluMul, IsWithinTheRoundingsOfItsSteps) {
  Dice dice(1);
  for (int n = 1; n <= kLargest; ++n) {
    auto gate = normal_floats(dice, static_cast<std::size_t>(n), n % 3 == 0 ? 30.0f : 3.0f);
    const auto up = normal_floats(dice, gate.size());
    if (n > 4) gate[0] = 0, gate[1] = -0.0f, gate[2] = 1000, gate[3] = -1000;
    const auto y =
        on_every_table(n, [&](const cpu::Kernels& k, float* to) { k.silu_mul(gate.data(), up.data(), n, to); });
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double x = gate[i], exact = x / (1 + std::exp(-x)) * static_cast<double>(up[i]);
      // e^-x within 2 ulp (4 roundings' worth), 1 +, / and *: gamma_7. Beyond e^88.37 the quotient is below 1e-35.
      ASSERT_NEAR(y[i], exact, gamma_n(7) * std::fabs(exact) + 1e-35 * std::fabs(static_cast<double>(up[i])))
          << "x " << x;
    }
  }
}

TEST(SigmoidMul, IsWithinTheRoundingsOfItsSteps) {
  Dice dice(5);
  for (int n = 1; n <= kLargest; ++n) {
    const auto x = normal_floats(dice, static_cast<std::size_t>(n));
    const auto gate = normal_floats(dice, x.size(), n % 3 == 0 ? 30.0f : 3.0f);
    const auto y =
        on_every_table(n, [&](const cpu::Kernels& k, float* to) { k.sigmoid_mul(x.data(), gate.data(), n, to); });
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double exact = static_cast<double>(x[i]) / (1 + std::exp(-static_cast<double>(gate[i])));
      ASSERT_NEAR(y[i], exact, gamma_n(6) * std::fabs(exact) + 1e-37) << "gate " << gate[i];
    }
  }
}

TEST(SiluMul, MayWriteOverItsGate) {
  Dice dice(2);
  const auto gate = normal_floats(dice, 37), up = normal_floats(dice, 37);
  for (const cpu::Kernels* kernels : machine_kernels()) {
    auto in_place = gate, apart = gate;
    kernels->silu_mul(gate.data(), up.data(), 37, apart.data());
    kernels->silu_mul(in_place.data(), up.data(), 37, in_place.data());
    EXPECT_TRUE(same_bits(in_place, apart)) << kernels->name;
  }
}

void check_rms_norm(Dice& dice, int n, float spread, float eps) {
  const auto x = normal_floats(dice, static_cast<std::size_t>(n), spread), w = normal_floats(dice, x.size());
  const auto y =
      on_every_table(n, [&](const cpu::Kernels& k, float* to) { k.rms_norm(x.data(), w.data(), n, eps, to); });
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * static_cast<double>(value);
  const double inverse = 1 / std::sqrt(sum / n + static_cast<double>(eps));
  // The sum of squares: chains of n / 16, the tree's 4, a tail of up to 15 twice; then /n, + eps, sqrt, 1 /, two
  // products.
  const double roundings = n / 16 + 4 + 2 * 15 + 6;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double exact = static_cast<double>(x[i]) * inverse * static_cast<double>(w[i]);
    ASSERT_NEAR(y[i], exact, gamma_n(roundings) * std::fabs(exact)) << "n " << n;
  }
}

TEST(RmsNorm, IsWithinTheRoundingsOfItsSteps) {
  Dice dice(3);
  for (int n = 1; n <= kLargest; ++n) {
    check_rms_norm(dice, n, 1, 1e-6f);
    check_rms_norm(dice, n, 100, 1e-5f);
  }
  check_rms_norm(dice, 4096, 1, 1e-6f);
  check_rms_norm(dice, 64, 1e-4f, 1e-6f);  // where eps decides
}

TEST(RmsNorm, OfZerosIsZero) {
  const std::vector<float> zeros(33, 0.0f), ones(33, 1.0f);
  for (const cpu::Kernels* kernels : machine_kernels()) {
    std::vector<float> y(33, 1.0f);
    kernels->rms_norm(zeros.data(), ones.data(), 33, 1e-6f, y.data());
    EXPECT_EQ(y, zeros) << kernels->name;
  }
}

TEST(RoundBf16, IsTheConversionOfDtype) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> special = {0.0f,
                                      -0.0f,
                                      kInfinity,
                                      -kInfinity,
                                      NAN,
                                      -NAN,
                                      3.4028235e38f,
                                      -3.4028235e38f,
                                      1e-40f,
                                      std::numeric_limits<float>::denorm_min(),
                                      1.00390625f,
                                      1.01171875f,
                                      std::bit_cast<float>(0x7F800001u),
                                      std::bit_cast<float>(0xFFFFFFFFu)};
  Dice dice(4);
  for (int n = 1; n <= kLargest; ++n) {
    std::vector<float> x(static_cast<std::size_t>(n)), expected;
    for (float& value : x)
      value =
          dice() % 3 == 0 ? special[dice() % special.size()] : std::bit_cast<float>(static_cast<std::uint32_t>(dice()));
    for (const float value : x) expected.push_back(bf16_to_f32(f32_to_bf16(value)));
    const auto y = on_every_table(n, [&](const cpu::Kernels& k, float* to) { k.round_bf16(x.data(), n, to); });
    ASSERT_TRUE(same_bits(y, expected)) << "n " << n;
  }
}

}  // namespace
}  // namespace steadfast::test
