// Keys of requests: a request without a seed gets one from its content, choices get distinct ones.
#include "engine/reply.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace steadfast {
namespace {

TEST(DefaultSeed, IsOfTheContentAlone) {
  Request request;
  request.prompt = {1, 2, 3};
  const Request same = request;
  EXPECT_EQ(default_seed(request), default_seed(same));
  request.sampling.seed = 99;  // a seed is not a part of what it is made from
  EXPECT_EQ(default_seed(request), default_seed(same));
}

TEST(DefaultSeed, DiffersWithEachPartOfTheContent) {
  Request plain;
  plain.prompt = {1, 2, 3};
  const std::function<void(Request&)> changes[] = {[](Request& r) {
                                                     r.prompt = {1, 2, 4};
                                                   },
                                                   [](Request& r) {
                                                     r.prompt = {1, 2, 3, 0};
                                                   },
                                                   [](Request& r) {
                                                     r.prompt = {2, 1, 3};
                                                   },
                                                   [](Request& r) { r.sampling.temperature = 0.5f; },
                                                   [](Request& r) { r.sampling.top_k = 5; },
                                                   [](Request& r) { r.sampling.top_p = 0.5f; },
                                                   [](Request& r) { r.sampling.min_p = 0.5f; },
                                                   [](Request& r) { r.sampling.repetition_penalty = 1.5f; },
                                                   [](Request& r) { r.sampling.presence_penalty = 0.5f; },
                                                   [](Request& r) { r.sampling.frequency_penalty = 0.5f; },
                                                   [](Request& r) {
                                                     r.sampling.logit_bias = {{1, 0.5f}};
                                                   },
                                                   [](Request& r) {
                                                     r.sampling.logit_bias = {{2, 0.5f}};
                                                   },
                                                   [](Request& r) {
                                                     r.sampling.logit_bias = {{1, 1.5f}};
                                                   }};
  std::set<std::uint64_t> seeds = {default_seed(plain)};
  for (const auto& change : changes) {
    Request request = plain;
    change(request);
    EXPECT_TRUE(seeds.insert(default_seed(request)).second) << "change " << seeds.size();
  }
}

TEST(ChoiceSeed, IsTheSeedForTheFirstAndDistinctForEach) {
  EXPECT_EQ(choice_seed(1234, 0), 1234u);
  std::set<std::uint64_t> seeds;
  for (const std::uint64_t seed : {0ull, 1ull, 1234ull, ~0ull})
    for (int index = 0; index < 100; ++index)
      EXPECT_TRUE(seeds.insert(choice_seed(seed, index)).second) << seed << ", " << index;
  EXPECT_EQ(choice_seed(5, 3), choice_seed(5, 3));
}

TEST(FinishReason, HasItsWord) {
  EXPECT_STREQ(to_string(FinishReason::kStop), "stop");
  EXPECT_STREQ(to_string(FinishReason::kLength), "length");
  EXPECT_STREQ(to_string(FinishReason::kCancelled), "cancelled");
  EXPECT_STREQ(to_string(FinishReason::kError), "error");
}

}  // namespace
}  // namespace steadfast
