// When a request is computed is not part of what it says: tiers and priorities reach the engine, the seed stays.
#include "server/generation.h"

#include <gtest/gtest.h>

namespace steadfast {
namespace {

struct Read {
  Request request;
  std::optional<ApiError> error;
};

Read read(const Json& body) {
  ModelCard card;
  card.vocab_size = 100;
  card.window = 64;
  FieldReader fields(body, "");
  const Generation generation = read_generation(fields, card, {});
  return {make_request(generation, {1, 2, 3}, 0), fields.error()};
}

TEST(Generation, BackgroundComesFromTierOrPriority) {
  const auto background = [](const Json& body) { return read(body).request.background; };
  EXPECT_FALSE(background(Json::object()));
  EXPECT_TRUE(background({{"service_tier", "flex"}}));
  EXPECT_TRUE(background({{"priority", 1}}));
  EXPECT_TRUE(background({{"service_tier", "default"}, {"priority", 7}}));
  EXPECT_FALSE(background({{"service_tier", "auto"}, {"priority", 0}}));
  EXPECT_FALSE(background({{"service_tier", "priority"}}));
  EXPECT_FALSE(background({{"service_tier", 3}}));
}

TEST(Generation, NothingGoesBeforeTheOrdinary) {
  const auto refused = read({{"priority", -1}});
  ASSERT_TRUE(refused.error);
  EXPECT_NE(refused.error->message.find("'priority' must be 0"), std::string::npos);
  EXPECT_TRUE(read({{"priority", 1.5}}).error);
  EXPECT_FALSE(read({{"priority", 5}}).error);
}

TEST(Generation, TheBackgroundsReplyHasTheSameKey) {
  EXPECT_EQ(read(Json::object()).request.sampling.seed, read({{"service_tier", "flex"}}).request.sampling.seed);
}

}  // namespace
}  // namespace steadfast
