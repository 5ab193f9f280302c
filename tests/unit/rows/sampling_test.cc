// Penalties, filters and log-probabilities against model-spec 9.1, 9.2 and 9.5.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "rows/draw.h"

namespace steadfast {
namespace {

std::vector<float> penalised(std::vector<float> logits, const SamplingParams& sampling, const History& history) {
  apply_penalties(logits, sampling, history);
  return logits;
}

std::vector<TokenId> kept(std::vector<float> logits, const SamplingParams& sampling) {
  DrawScratch scratch;
  filter(logits, sampling, scratch);
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -INFINITY) ids.push_back(static_cast<TokenId>(i));
  return ids;
}

using Ids = std::vector<TokenId>;
using Logits = std::vector<float>;

TEST(Penalties, DefaultsChangeNothing) {
  const Logits logits = {1, -2, 0.5f, 3};
  EXPECT_EQ(penalised(logits, {}, {{0, 1, 1}, {2, 2}}), logits);
}

TEST(Penalties, RepetitionLooksAtPromptAndReplyOnce) {
  SamplingParams sampling;
  sampling.repetition_penalty = 2;
  EXPECT_EQ(penalised({1, -2, 3, -4, 5}, sampling, {{0, 1, 1, 1}, {2, 2}}), (Logits{0.5f, -4, 1.5f, -4, 5}));
}

TEST(Penalties, FrequencyAndPresenceCountTheReplyAlone) {
  SamplingParams sampling;
  sampling.frequency_penalty = 0.5f;
  EXPECT_EQ(penalised({1, 1, 1}, sampling, {{0, 0, 1}, {2, 2, 2}}), (Logits{1, 1, -0.5f}));
  sampling.frequency_penalty = 0;
  sampling.presence_penalty = 0.75f;
  EXPECT_EQ(penalised({1, 1, 1}, sampling, {{0, 0, 1}, {2, 2, 2}}), (Logits{1, 1, 0.25f}));
}

TEST(Penalties, ComeAfterTheBiasAndInOrder) {
  SamplingParams sampling;
  sampling.logit_bias = {{0, 3.0f}, {1, -100.0f}};
  sampling.repetition_penalty = 2;
  sampling.frequency_penalty = 0.25f;
  sampling.presence_penalty = 0.5f;
  // id 0: (1 + 3) / 2 - 0.25 * 2 - 0.5; id 1 was not seen; id 2: in the prompt alone.
  EXPECT_EQ(penalised({1, 1, 4}, sampling, {{2}, {0, 0}}), (Logits{1, -99, 2}));
}

TEST(Penalties, IgnoreIdsOutsideTheVocabulary) {
  SamplingParams sampling;
  sampling.logit_bias = {{-1, 5.0f}, {3, 5.0f}};
  sampling.repetition_penalty = 2;
  sampling.presence_penalty = 1;
  EXPECT_EQ(penalised({1, 1, 1}, sampling, {{900, -7}, {3, 1 << 30}}), (Logits{1, 1, 1}));
}

TEST(Filter, DividesByTheTemperature) {
  Logits logits = {1, -3, 0};
  SamplingParams sampling;
  sampling.temperature = 0.5f;
  DrawScratch scratch;
  filter(logits, sampling, scratch);
  EXPECT_EQ(logits, (Logits{2, -6, 0}));
}

const Logits kExample = {2, 1, .5f, 0, -1};  // probabilities .5630 .2071 .1256 .0762 .0280

TEST(Filter, TopPKeepsTheExamplesFour) {
  SamplingParams sampling;
  sampling.top_p = 0.9f;
  EXPECT_EQ(kept(kExample, sampling), (Ids{0, 1, 2, 3}));
  sampling.top_p = 0.98f;
  EXPECT_EQ(kept(kExample, sampling), (Ids{0, 1, 2, 3, 4}));
  sampling.top_p = 0.7f;
  EXPECT_EQ(kept(kExample, sampling), (Ids{0, 1}));
  sampling.top_p = 0.0f;
  EXPECT_EQ(kept(kExample, sampling), (Ids{0}));
}

TEST(Filter, TopPIsOfTheTemperedProbabilities) {
  SamplingParams sampling;
  sampling.top_p = 0.7f;
  sampling.temperature = 4;  // nearly even: more ids are needed for 0.7
  EXPECT_EQ(kept(kExample, sampling), (Ids{0, 1, 2, 3}));
}

TEST(Filter, TopKKeepsTies) {
  SamplingParams sampling;
  sampling.top_k = 2;
  EXPECT_EQ(kept({1, 5, 3, 3, 3, 0}, sampling), (Ids{1, 2, 3, 4}));
  sampling.top_k = 1;
  EXPECT_EQ(kept({1, 5, 3, 3, 5, 0}, sampling), (Ids{1, 4}));
  for (const int off : {0, -1, 6, 100}) {
    sampling.top_k = off;
    EXPECT_EQ(kept({1, 5, 3, 3, 3, 0}, sampling).size(), 6u) << off;
  }
}

TEST(Filter, MinPIsRelativeToTheLargest) {
  SamplingParams sampling;
  sampling.min_p = 0.3f;  // .5630 * .3 = .1689
  EXPECT_EQ(kept(kExample, sampling), (Ids{0, 1}));
  sampling.min_p = 0.1f;
  EXPECT_EQ(kept(kExample, sampling), (Ids{0, 1, 2, 3}));
  sampling.min_p = 1.0f;
  EXPECT_EQ(kept(kExample, sampling), (Ids{0}));
}

TEST(Filter, TopPIsOfWhatTopKLeft) {
  SamplingParams sampling;
  sampling.top_k = 3;  // renormalised: .6285 .2312 .1402
  sampling.top_p = 0.85f;
  EXPECT_EQ(kept(kExample, sampling), (Ids{0, 1}));
}

TEST(Filter, LeavesWhatItKeepsAsItWas) {
  Logits logits = kExample;
  SamplingParams sampling;
  sampling.top_k = 2;
  DrawScratch scratch;
  filter(logits, sampling, scratch);
  EXPECT_EQ(logits, (Logits{2, 1, -INFINITY, -INFINITY, -INFINITY}));
}

TEST(Filter, AgreesWithADefinitionByProbabilities) {
  std::mt19937 dice(5);
  std::normal_distribution<float> normal(0, 3);
  for (int round = 0; round < 500; ++round) {
    Logits logits(1 + dice() % 60);
    for (float& logit : logits) logit = normal(dice);
    SamplingParams sampling;
    sampling.top_p = static_cast<float>(dice() % 1000) / 1000;
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    Ids expected;  // an id stays where the mass at and below it exceeds 1 - p, or nothing is above it
    for (std::size_t i = 0; i < logits.size(); ++i) {
      double at_or_below = 0;
      bool first = true;
      for (const float other : logits) {
        if (other <= logits[i]) at_or_below += std::exp(static_cast<double>(other)) / total;
        first = first && other <= logits[i];
      }
      if (first || at_or_below > 1 - static_cast<double>(sampling.top_p)) expected.push_back(static_cast<TokenId>(i));
    }
    EXPECT_EQ(kept(logits, sampling), expected) << "round " << round << ", top_p " << sampling.top_p;
  }
}

TEST(LogProbability, IsTheLogSoftmax) {
  std::mt19937 dice(9);
  std::normal_distribution<float> normal(100, 5);
  Logits logits(1000);
  for (float& logit : logits) logit = normal(dice);
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - 100);
  for (const TokenId id : {0, 1, 500, 999}) {
    const auto got = log_probability(logits, id, 0);
    EXPECT_EQ(got.id, id);
    EXPECT_TRUE(got.top.empty());
    const double exact = static_cast<double>(logits[static_cast<std::size_t>(id)]) - 100 - std::log(total);
    EXPECT_NEAR(got.logprob, exact, 1e-6 * std::fabs(exact));  // one rounding to float
  }
}

TEST(LogProbability, TopIsDescendingAndTiesGoByTheId) {
  const auto got = log_probability(Logits{1, 3, 2, 3, -50}, 4, 4);
  ASSERT_EQ(got.top.size(), 4u);
  Ids ids;
  for (const auto& [id, logprob] : got.top) ids.push_back(id);
  EXPECT_EQ(ids, (Ids{1, 3, 2, 0}));
  EXPECT_EQ(got.top[0].second, got.top[1].second);
  EXPECT_NEAR(got.top[0].second - got.top[2].second, 1, 1e-6);
  EXPECT_EQ(log_probability(Logits{1, 2}, 0, 20).top.size(), 2u);
}

TEST(LogProbability, IsAtLeastMinus9999) {
  EXPECT_EQ(log_probability(Logits{0, -INFINITY}, 1, 0).logprob, -9999.0f);
  EXPECT_EQ(log_probability(Logits{0, -20000}, 1, 2).top[1].second, -9999.0f);
}

}  // namespace
}  // namespace steadfast
