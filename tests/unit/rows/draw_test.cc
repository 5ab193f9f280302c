// The keyed draw: generator and noise against known answers, the draw against a search without shortcuts, its
// distribution against softmax.
#include "rows/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace steadfast {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, ~std::uint64_t{0}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(DrawKey, IsTheOneOfTheSpecification) {  // model-spec 9.3
  EXPECT_EQ(draw_key(42, 10), 0x864dde19u);
  EXPECT_EQ(draw_key(42, 11), 0x53ca7f13u);
  EXPECT_EQ(draw_key(42, 12), 0x61722e9du);
}

TEST(DrawKey, SeparatesPositionsBeyond32Bits) {
  EXPECT_NE(draw_key(42, 10), draw_key(42, 10 + (std::int64_t{1} << 32)));
}

TEST(Gumbel, IsTheOneOfTheSpecification) {
  const double uniforms[] = {.259030, .521264, .814302};
  const double noise[] = {1.204655, .305701, -.520954};
  for (TokenId token = 0; token < 3; ++token) {
    const double g = gumbel(draw_key(42, 10), token);
    EXPECT_NEAR(g, noise[token], 1e-6);
    EXPECT_NEAR(-std::expm1(-std::exp(-g)), uniforms[token], 1e-6);  // u back from -ln(-ln(1 - u))
  }
  const double next[] = {.531517, -.620250, 1.389943};
  for (TokenId token = 0; token < 3; ++token) EXPECT_NEAR(gumbel(draw_key(42, 11), token), next[token], 1e-6);
}

TokenId draw_of(std::vector<float> logits, const SamplingParams& sampling, std::int64_t position) {
  DrawScratch scratch;
  return draw(logits, sampling, position, scratch);
}

SamplingParams with_seed(std::uint64_t seed) {
  SamplingParams sampling;
  sampling.seed = seed;
  return sampling;
}

TEST(Draw, TakesTheTokensOfTheSpecification) {
  const std::vector<float> logits = {2, 1, .5f, 0, -1};
  EXPECT_EQ(draw_of(logits, with_seed(42), 10), 0);
  EXPECT_EQ(draw_of(logits, with_seed(42), 11), 0);
  EXPECT_EQ(draw_of(logits, with_seed(42), 12), 2);
}

TEST(Draw, GreedyTiesGoToTheLowestId) {
  SamplingParams greedy;
  greedy.temperature = 0;
  EXPECT_EQ(draw_of({1, 3, 3, 2, 3}, greedy, 5), 1);
  EXPECT_EQ(draw_of({-INFINITY, -4, -4}, greedy, 5), 1);
  EXPECT_EQ(draw_of({NAN, -4, 7, 7, NAN}, greedy, 5), 2);
}

TEST(Draw, TiesOfNoisyScoresGoToTheLowestId) {
  // Near 1e9 floats lie 64 apart: no noise changes a score, so all are equal.
  for (std::int64_t position = 0; position < 50; ++position) {
    EXPECT_EQ(draw_of(std::vector<float>(40, 1e9f), with_seed(7), position), 0);
    std::vector<float> two(40, -INFINITY);
    two[5] = two[9] = 1e9f;
    EXPECT_EQ(draw_of(two, with_seed(7), position), 5);
  }
}

// Every id's score, no bound.
TokenId brute_force(const std::vector<float>& logits, const SamplingParams& sampling, std::int64_t position) {
  const std::uint32_t key = draw_key(sampling.seed, position);
  TokenId best = -1;
  float best_score = -INFINITY;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == -INFINITY) continue;
    const float score = logits[i] / sampling.temperature + gumbel(key, static_cast<TokenId>(i));
    if (best < 0 || score > best_score) {
      best = static_cast<TokenId>(i);
      best_score = score;
    }
  }
  return best;
}

TEST(Draw, EqualsASearchOverAllIds) {
  std::mt19937 dice(11);
  int not_the_peak = 0;
  for (int round = 0; round < 4000; ++round) {
    const float spread = std::array{0.1f, 1.0f, 4.0f, 20.0f}[static_cast<std::size_t>(round % 4)];
    std::normal_distribution<float> normal(round % 3 == 0 ? -50.0f : 0.0f, spread);
    std::vector<float> logits(static_cast<std::size_t>(1 + round % 300));
    for (float& logit : logits) logit = dice() % 16 == 0 ? -INFINITY : normal(dice);
    logits[dice() % logits.size()] = normal(dice);
    SamplingParams sampling = with_seed(dice());
    sampling.temperature = round % 2 == 0 ? 1.0f : 0.7f;
    const TokenId expected = brute_force(logits, sampling, round);
    ASSERT_EQ(draw_of(logits, sampling, round), expected) << "round " << round;
    if (logits[static_cast<std::size_t>(expected)] < *std::max_element(logits.begin(), logits.end())) ++not_the_peak;
  }
  EXPECT_GT(not_the_peak, 500);  // the noise decided often: the comparison means something
}

double chi_square(const std::vector<int>& counts, const std::vector<float>& logits, double temperature) {
  double total = 0, drawn = 0, sum = 0;
  for (const float logit : logits) total += std::exp(logit / temperature);
  for (const int count : counts) drawn += count;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = drawn * std::exp(logits[i] / temperature) / total;
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

TEST(Draw, FollowsTheSoftmax) {
  const std::vector<float> logits = {1.5f, 0.25f, -0.5f, 1.0f, -2.0f, 0.0f, 0.75f, -1.0f};
  constexpr double kLimit = 24.3;  // 7 degrees of freedom, p = 0.001
  for (const float temperature : {1.0f, 0.6f, 1.7f}) {
    std::vector<int> over_positions(logits.size()), over_seeds(logits.size());
    for (int i = 0; i < 20000; ++i) {
      SamplingParams sampling = with_seed(1234);
      sampling.temperature = temperature;
      ++over_positions[static_cast<std::size_t>(draw_of(logits, sampling, i))];
      sampling.seed = static_cast<std::uint64_t>(i);
      ++over_seeds[static_cast<std::size_t>(draw_of(logits, sampling, 77))];
    }
    EXPECT_LT(chi_square(over_positions, logits, temperature), kLimit) << temperature;
    EXPECT_LT(chi_square(over_seeds, logits, temperature), kLimit) << temperature;
    EXPECT_GT(chi_square(over_positions, logits, 1.2 * temperature), kLimit) << "the test cannot tell temperatures";
  }
}

TEST(Draw, NeverTakesWhatIsFilteredOut) {
  SamplingParams sampling = with_seed(3);
  sampling.top_k = 2;
  std::vector<int> counts(5);
  for (int position = 0; position < 500; ++position)
    ++counts[static_cast<std::size_t>(draw_of({0, 1, 0.5f, 2, -1}, sampling, position))];
  EXPECT_EQ(counts[0] + counts[2] + counts[4], 0);
  EXPECT_GT(counts[1], 50);
  EXPECT_GT(counts[3], 200);
}

}  // namespace
}  // namespace steadfast
