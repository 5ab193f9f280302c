// Receipts alone: the canonical form of docs/receipts.md, whose example is checked here.
#include "server/receipt.h"

#include <gtest/gtest.h>

namespace steadfast {
namespace {

ModelCard card_of() {
  ModelCard card;
  card.digest = "0123456789abcdef0123456789abcdef";
  card.arithmetic = {"cpu", "int8", "int8", "bf16"};
  card.window = 100;
  return card;
}

Request request_of() {
  Request request;
  request.prompt = {1, 2, 300};
  request.sampling.temperature = 0.7f;
  request.sampling.top_k = 40;
  request.sampling.top_p = 0.95f;
  request.sampling.seed = 18446744073709551615ULL;
  request.max_tokens = 16;
  request.stop = {"\n\n", "é"};
  return request;
}

TEST(Receipt, IsTheDocumentedOne) {
  const std::vector<TokenId> ids = {5, 70000};
  const Json json = to_json(make_receipt(request_of(), card_of()), ids, {});
  const std::string canonical =
      R"({"model_digest":"0123456789abcdef0123456789abcdef",)"
      R"("prompt_ids_sha256":"ec23a88fb0aa4b38d5442523720f6576ba6310212cb39a86e9b71f42741f74f8",)"
      R"("seed":18446744073709551615,"sampling":{"temperature":0.7,"top_k":40,"top_p":0.95,"min_p":0,)"
      R"("repetition_penalty":1,"presence_penalty":0,"frequency_penalty":0},)"
      R"("max_tokens":16,"stop":["\n\n","é"],"stop_ids":[],"ignore_eos":false})";
  EXPECT_EQ(canonical_request(json)->dump(), canonical);
  EXPECT_EQ(json["request_digest"], "cab6b87ec24650af6aaae88b9f05877c679a6b0d4d5bba96f5f5c06d0f5c21dc");
  EXPECT_EQ(json["ids_sha256"], "3bc28f82462ae9ca6253525044dfa4f17940a016f228b72f94c5a67283430d06");
}

TEST(Receipt, LimitsAreThoseUsed) {
  Request request = request_of();
  const auto limit = [&](int asked) {
    request.max_tokens = asked;
    return make_receipt(request, card_of()).content["max_tokens"];
  };
  EXPECT_EQ(limit(0), 97);
  EXPECT_EQ(limit(97), 97);
  EXPECT_EQ(limit(98), 97);
  EXPECT_EQ(limit(1), 1);
}

TEST(Receipt, EveryFieldChangesTheDigest) {
  const std::string base = request_digest(make_receipt(request_of(), card_of()).content);
  const auto differs = [&](auto change) {
    Request request = request_of();
    change(request);
    return request_digest(make_receipt(request, card_of()).content) != base;
  };
  EXPECT_TRUE(differs([](Request& r) { r.prompt.back() = 301; }));
  EXPECT_TRUE(differs([](Request& r) { r.sampling.seed = 1; }));
  EXPECT_TRUE(differs([](Request& r) { r.sampling.temperature = 0.70000005f; }));
  EXPECT_TRUE(differs([](Request& r) { r.sampling.logit_bias[7] = 1; }));
  EXPECT_TRUE(differs([](Request& r) { r.stop = {"\n\n"}; }));
  EXPECT_TRUE(differs([](Request& r) { r.stop_ids = {4}; }));
  EXPECT_TRUE(differs([](Request& r) { r.ignore_eos = true; }));
  EXPECT_FALSE(differs([](Request& r) { r.top_logprobs = 5; }));
  ModelCard other = card_of();
  other.digest[0] = '1';
  EXPECT_NE(request_digest(make_receipt(request_of(), other).content), base);
}

TEST(Receipt, TheCanonicalFormNeedsEveryKey) {
  const Json whole = to_json(make_receipt(request_of(), card_of(), 1700000000), {}, {});
  EXPECT_EQ(whole["now"], 1700000000);
  const auto canonical = canonical_request(whole);
  ASSERT_TRUE(canonical);
  for (const auto& [key, value] : canonical->items()) {
    Json less = whole;
    less.erase(key);
    EXPECT_FALSE(canonical_request(less)) << key;
  }
}

}  // namespace
}  // namespace steadfast
