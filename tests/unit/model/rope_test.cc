// Rotary frequencies against the check values of model-spec 2.4, and the tables against double.
#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/cpu_backend.h"

namespace steadfast {
namespace {

using nlohmann::json;

RopeConfig made(const json& scaling, double theta, int dims, int max_positions = 131072) {
  auto rope = make_rope(scaling, theta, dims, max_positions);
  EXPECT_TRUE(rope) << rope.message();
  return rope ? *rope : RopeConfig{};
}

// A round's tables.
void fill_rope(const RopeConfig& rope, std::span<const std::int32_t> positions, std::vector<float>& cosine,
               std::vector<float>& sine) {
  std::vector<float> inverse = rope.inverse;
  for (float& value : inverse) value *= rope.position_factor;
  auto backend = make_cpu_backend({1, Act::kF32, ""});
  ASSERT_TRUE(backend) << backend.message();
  (*backend)->rope_table(positions, inverse.data(), static_cast<int>(inverse.size()), rope.magnitude, cosine.data(),
                         sine.data());
}

void expect_relative(double got, double expected, double tolerance) {
  EXPECT_NEAR(got, expected, tolerance * std::fabs(expected));
}

TEST(Rope, DefaultIsThePowersOfTheta) {
  const RopeConfig rope = made(nullptr, 1e7, 64);
  ASSERT_EQ(rope.inverse.size(), 32u);
  EXPECT_EQ(rope.inverse[0], 1.0f);
  expect_relative(rope.inverse[1], 0.60429639, 1e-7);  // model-spec 1.5
  expect_relative(rope.inverse[31], 1.6548171e-07, 1e-7);
  for (std::size_t i = 0; i < 32; ++i)
    expect_relative(rope.inverse[i], std::pow(1e7, -2.0 * static_cast<double>(i) / 64), 0x1p-24 * 1.01);
  EXPECT_EQ(rope.position_factor, 1.0f);
  EXPECT_EQ(rope.magnitude, 1.0f);
  EXPECT_EQ(made({{"rope_type", "default"}}, 1e7, 64).inverse, rope.inverse);
  EXPECT_EQ(made({{"type", "mrope"}}, 1e7, 64).inverse, rope.inverse);
}

TEST(Rope, Llama3HasItsCheckValues) {
  const json scaling = {{"rope_type", "llama3"},
                        {"factor", 32.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192}};
  const RopeConfig rope = made(scaling, 5e5, 128), plain = made(nullptr, 5e5, 128);
  EXPECT_NEAR(2 * M_PI / static_cast<double>(plain.inverse[20]), 379.4, 0.05);
  EXPECT_EQ(rope.inverse[20], plain.inverse[20]);
  expect_relative(plain.inverse[30], 0.00213112, 3e-6);
  expect_relative(rope.inverse[30], 0.00129055, 5e-6);
  expect_relative(rope.inverse[40], 8.570255e-06, 1e-6);
  expect_relative(rope.inverse[63], static_cast<double>(plain.inverse[63]) / 32, 1e-7);
}

TEST(Rope, YarnHasItsCheckValues) {
  const json scaling = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 262144}};
  const RopeConfig rope = made(scaling, 1e7, 64), plain = made(nullptr, 1e7, 64);
  expect_relative(rope.magnitude, 1.138629, 1e-6);
  for (std::size_t i = 0; i <= 14; ++i) EXPECT_EQ(rope.inverse[i], plain.inverse[i]) << i;  // lo = 14
  EXPECT_LT(rope.inverse[15], plain.inverse[15]);
  expect_relative(1 / static_cast<double>(plain.inverse[15]), 1910.953, 1e-6);
  expect_relative(1 / static_cast<double>(rope.inverse[15]), 2108.638, 1e-6);
  expect_relative(1 / static_cast<double>(plain.inverse[20]), 23713.74, 1e-6);
  expect_relative(1 / static_cast<double>(rope.inverse[20]), 54202.83, 1e-6);
  EXPECT_GT(rope.inverse[21], plain.inverse[21] / 4);
  for (std::size_t i = 22; i < 32; ++i) EXPECT_EQ(rope.inverse[i], plain.inverse[i] / 4) << i;  // hi = 22
}

TEST(Rope, YarnTakesItsMagnitudeFromTheConfig) {
  json scaling = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 4096}};
  scaling["mscale"] = 0.5;
  scaling["mscale_all_dim"] = 0.25;
  expect_relative(made(scaling, 1e4, 64).magnitude, (0.05 * std::log(4.0) + 1) / (0.025 * std::log(4.0) + 1), 1e-6);
  scaling["attention_factor"] = 1.75;
  EXPECT_EQ(made(scaling, 1e4, 64).magnitude, 1.75f);
}

TEST(Rope, LinearDividesPositions) {
  const RopeConfig rope = made({{"type", "linear"}, {"factor", 4.0}}, 10000, 16);
  EXPECT_EQ(rope.position_factor, 0.25f);
  std::vector<float> cosine(8), sine(8), expected_cosine(8), expected_sine(8);
  const std::int32_t far = 20, near = 5;
  fill_rope(rope, {&far, 1}, cosine, sine);
  fill_rope(made(nullptr, 10000, 16), {&near, 1}, expected_cosine, expected_sine);
  EXPECT_EQ(cosine, expected_cosine);
  EXPECT_EQ(sine, expected_sine);
}

TEST(Rope, TablesAreCosineAndSineOfTheFloatAngle) {
  RopeConfig rope = made(nullptr, 10000, 32);
  rope.magnitude = 1.5f;
  const std::vector<std::int32_t> positions = {0, 1, 77, 4095, 131071, (1 << 24) - 1};
  std::vector<float> cosine(positions.size() * 16), sine(cosine.size());
  fill_rope(rope, positions, cosine, sine);
  for (std::size_t p = 0; p < positions.size(); ++p) {
    for (std::size_t i = 0; i < 16; ++i) {
      const double angle = static_cast<float>(positions[p]) * rope.inverse[i];
      EXPECT_NEAR(cosine[p * 16 + i], 1.5 * std::cos(angle), 1.5 * 0x1p-23) << positions[p];
      EXPECT_NEAR(sine[p * 16 + i], 1.5 * std::sin(angle), 1.5 * 0x1p-23) << positions[p];
    }
  }
}

TEST(Rope, RefusesWhatItDoesNotKnowOrCannotUse) {
  const std::pair<json, const char*> cases[] = {
      {{{"rope_type", "dynamic"}, {"factor", 2.0}}, "\"dynamic\" is not supported"},
      {{{"rope_type", 7}}, "\"rope_type\""},
      {{{"rope_type", "linear"}, {"factor", 0}}, "\"factor\""},
      {{{"rope_type", "linear"}, {"factor", "two"}}, "\"factor\""},
      {{{"rope_type", "llama3"}, {"low_freq_factor", 4.0}, {"high_freq_factor", 4.0}}, "\"high_freq_factor\""},
      {{{"rope_type", "yarn"}, {"beta_fast", -1}}, "\"beta_fast\""}};
  for (const auto& [scaling, part] : cases) {
    const auto rope = make_rope(scaling, 10000, 64, 2048);
    EXPECT_FALSE(rope) << scaling;
    EXPECT_NE(rope.message().find(part), std::string::npos) << rope.message();
  }
}

}  // namespace
}  // namespace steadfast
