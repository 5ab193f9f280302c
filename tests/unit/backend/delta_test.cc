// The recurrent kernels: the worked examples of model-spec 1.6, float64 with a derived bound, the same bits everywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernel_cases.h"

namespace steadfast::test {
namespace {

TEST(ConvSilu, GivesTheExampleOfTheSpecification) {
  const std::vector<float> taps = {.1f, .2f, .3f, .4f}, zero = {0}, one = {1}, two = {2}, three = {3};
  const float* rows[] = {zero.data(), zero.data(), zero.data(), one.data(), two.data(), three.data()};
  const double expected[] = {0.239475, 0.825286, 1.761594};
  for (const cpu::Kernels* kernels : machine_kernels()) {
    for (int t = 0; t < 3; ++t) {
      float y = 0;
      kernels->conv_silu(rows + t, taps.data(), 4, 1, &y);
      EXPECT_NEAR(y, expected[t], 1e-6) << kernels->name;
    }
  }
}

TEST(ConvSilu, HasTheSameBitsForEveryNumberOfChannels) {
  Dice dice(1);
  for (int channels = 1; channels <= 70; ++channels) {
    const auto x = normal_floats(dice, static_cast<std::size_t>(4 * channels)), w = normal_floats(dice, x.size());
    const float* rows[] = {x.data(), x.data() + channels, x.data() + 2 * channels, x.data() + 3 * channels};
    std::vector<float> expected;
    for (const cpu::Kernels* kernels : machine_kernels()) {
      std::vector<float> y(static_cast<std::size_t>(channels) + kSlack, kUntouched);
      kernels->conv_silu(rows, w.data(), 4, channels, y.data());
      for (int i = 0; i < kSlack; ++i) ASSERT_EQ(y[static_cast<std::size_t>(channels + i)], kUntouched);
      if (expected.empty()) expected = y;
      EXPECT_TRUE(same_bits(y, expected)) << kernels->name << ", " << channels << " channels";
    }
    for (int c = 0; c < channels; ++c) {
      double sum = 0, size = 0;
      for (int j = 0; j < 4; ++j) {
        const double term =
            static_cast<double>(w[static_cast<std::size_t>(j * channels + c)]) * static_cast<double>(rows[j][c]);
        sum += term;
        size += std::fabs(term);
      }
      // silu's slope is below 1.1; its own steps round as in silu_mul.
      const double exact = sum / (1 + std::exp(-sum));
      ASSERT_NEAR(expected[static_cast<std::size_t>(c)], exact,
                  1.1 * gamma_n(4) * size + gamma_n(7) * std::fabs(exact));
    }
  }
}

TEST(L2Norm, IsWithinTheRoundingsOfItsSteps) {
  Dice dice(2);
  for (const int n : {16, 32, 48, 64, 128, 256}) {
    const auto x = normal_floats(dice, static_cast<std::size_t>(n), n == 32 ? 1e-4f : 1.0f);
    double sum = 0;
    for (const float value : x) sum += static_cast<double>(value) * static_cast<double>(value);
    std::vector<float> expected;
    for (const cpu::Kernels* kernels : machine_kernels()) {
      auto y = x;
      kernels->l2_norm(y.data(), n, 0.25f);
      if (expected.empty()) expected = y;
      EXPECT_TRUE(same_bits(y, expected)) << kernels->name;
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = static_cast<double>(x[i]) / std::sqrt(sum + 1e-6) * 0.25;
      ASSERT_NEAR(expected[i], exact, gamma_n(n / 16 + 10) * std::fabs(exact)) << n;
    }
  }
}

TEST(DeltaStep, GivesTheWorkedExample) {
  struct Token {
    float query[2], key[2], value[2], beta, decay;
    double out[2], state[4];
  };
  const Token tokens[] = {{{1, 0}, {.6f, .8f}, {1, 2}, .5f, .9f, {.3, .6}, {.3, .6, .4, .8}},
                          {{0, 1}, {.8f, -.6f}, {3, -1}, .25f, .5f, {-.25, .55}, {.75, .1, -.25, .55}},
                          {{.6f, .8f}, {1, 0}, {0, 1}, .8f, .8f, {-.088, .8416}, {.12, .816, -.2, .44}}};
  for (const cpu::Kernels* kernels : machine_kernels()) {
    std::vector<float> state(2 * 16);  // two key dims, value dims rounded up to 16
    for (const Token& token : tokens) {
      float out[2];
      kernels->delta_step({token.query, token.key, token.value, out, token.decay, token.beta}, 2, 2, state.data());
      for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(out[i], token.out[i], 1e-6) << kernels->name;
      for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(state[i / 2 * 16 + i % 2], token.state[i], 1e-6) << kernels->name;
    }
  }
}

TEST(DeltaStep, FollowsFloat64AndHasTheSameBitsEverywhere) {
  Dice dice(3);
  constexpr int kSteps = 40;
  for (const auto& [key_dim, value_dim] : {std::pair(16, 16), {32, 64}, {64, 80}, {128, 128}, {48, 33}}) {
    const auto dk = static_cast<std::size_t>(key_dim), dv = static_cast<std::size_t>(value_dim),
               width = (dv + 15) / 16 * 16;
    const auto queries = normal_floats(dice, kSteps * dk, 0.1f), values = normal_floats(dice, kSteps * dv);
    auto keys = normal_floats(dice, kSteps * dk);
    for (std::size_t t = 0; t < kSteps; ++t) {  // unit keys, as the model gives them
      double squares = 0;
      for (std::size_t k = 0; k < dk; ++k)
        squares += static_cast<double>(keys[t * dk + k]) * static_cast<double>(keys[t * dk + k]);
      for (std::size_t k = 0; k < dk; ++k) keys[t * dk + k] /= static_cast<float>(std::sqrt(squares));
    }
    std::vector<float> expected;
    for (const cpu::Kernels* kernels : machine_kernels()) {
      std::vector<float> state(dk * width), out(kSteps * dv);
      for (std::size_t t = 0; t < kSteps; ++t)
        kernels->delta_step({&queries[t * dk], &keys[t * dk], &values[t * dv], &out[t * dv], 0.95f, 0.6f}, key_dim,
                            value_dim, state.data());
      if (expected.empty()) expected = out;
      EXPECT_TRUE(same_bits(out, expected)) << kernels->name << ", " << key_dim << " by " << value_dim;
    }
    std::vector<double> state(dk * dv);
    for (std::size_t t = 0; t < kSteps; ++t) {
      for (std::size_t v = 0; v < dv; ++v) {
        double memory = 0, out = 0, size = 0;
        for (std::size_t k = 0; k < dk; ++k)
          memory += (state[k * dv + v] *= static_cast<double>(0.95f)) * static_cast<double>(keys[t * dk + k]);
        const double d = static_cast<double>(0.6f) * (static_cast<double>(values[t * dv + v]) - memory);
        for (std::size_t k = 0; k < dk; ++k) {
          state[k * dv + v] += static_cast<double>(keys[t * dk + k]) * d;
          out += state[k * dv + v] * static_cast<double>(queries[t * dk + k]);
          size += std::fabs(state[k * dv + v] * static_cast<double>(queries[t * dk + k]));
        }
        // A step is a contraction (decay < 1, beta and |k| at most 1): each of the steps so far, two chains of key_dim,
        // adds its roundings once, scaled by the query's size; the state's size is below the values' sum of decays.
        const double norm = 0.1 * std::sqrt(static_cast<double>(key_dim)) * 3;
        ASSERT_NEAR(expected[t * dv + v], out,
                    gamma_n(2 * key_dim + 4) * (size + static_cast<double>(t + 1) * 4 * norm));
      }
    }
  }
}

}  // namespace
}  // namespace steadfast::test
