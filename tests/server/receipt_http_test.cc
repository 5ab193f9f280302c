// Receipts of the API: their digest follows from themselves, and what they hold is enough to ask again.
#include "harness.h"
#include "server/digest.h"
#include "server/receipt.h"

namespace steadfast::testing {
namespace {

constexpr const char* kChat = "/v1/chat/completions";

class ReceiptTest : public HttpTest {
 protected:
  Json receipt_of(const char* path, const Json& body) {
    const Reply reply = post(path, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json()["steadfast"];
  }

  // The fields of a request that asks for a receipt's reply again.
  static Json fields_of(const Json& receipt) {
    Json fields = {{"seed", receipt["seed"]},
                   {"max_tokens", receipt["max_tokens"]},
                   {"stop", receipt["stop"]},
                   {"stop_token_ids", receipt["stop_ids"]},
                   {"ignore_eos", receipt["ignore_eos"]}};
    fields.update(receipt["sampling"]);
    if (receipt.contains("now")) fields["steadfast"] = {{"now", receipt["now"]}};
    return fields;
  }
};

TEST_F(ReceiptTest, TheDigestFollowsFromTheReceipt) {
  start();
  const Json receipt = receipt_of(kChat, chat("Hi", {{"max_tokens", 8}, {"stop", "é\"\n"}, {"top_p", 0.9}}));
  const auto canonical = canonical_request(receipt);
  ASSERT_TRUE(canonical);
  EXPECT_EQ(receipt["request_digest"], hex(sha256(canonical->dump())));
  EXPECT_EQ(receipt["arithmetic"].dump(),
            R"({"target":"fake","act":"f32","prompt_act":"f32","kv_dtype":"f32","version":1})");
  EXPECT_EQ(receipt["path"].dump(),
            R"({"kv":"whole","prefix_rows":0,"prompt_pieces":1,"rounds":8,"rounds_shared":0,"set_aside":0})");
  EXPECT_FALSE(receipt.contains("now"));
  const auto prompt = service().tokenizer()->encode("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(receipt["prompt_ids_sha256"], sha256_of_ids(prompt));
}

TEST_F(ReceiptTest, WhatItHoldsAsksForTheReplyAgain) {
  start();
  const Json asked[] = {
      {{"temperature", 0.7}, {"top_k", 40}, {"logit_bias", {{"65", -3.5}, {"7", 2}}}},
      {{"stop", {"q", "zz"}}, {"stop_token_ids", {101, 102}}, {"repetition_penalty", 1.1}},
      {{"max_tokens", 30}, {"ignore_eos", true}, {"presence_penalty", 0.25}, {"stop_token_ids", {103}}},
  };
  for (const Json& more : asked) {
    const Json first = receipt_of(kChat, chat("Hi", more));
    const Json again = receipt_of(kChat, chat("Hi", fields_of(first)));
    EXPECT_EQ(first.dump(), again.dump());
    const auto prompt = service().tokenizer()->encode("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    Json raw = fields_of(first);
    raw["prompt"] = prompt;
    EXPECT_EQ(receipt_of("/v1/completions", raw).dump(), first.dump());
  }
}

TEST_F(ReceiptTest, EachChoiceHasItsOwn) {
  start();
  const Json choices = receipt_of(kChat, chat("Hi", {{"n", 3}, {"max_tokens", 20}}))["choices"];
  ASSERT_EQ(choices.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    Json one = choices[i];
    EXPECT_EQ(one["index"], i);
    one.erase("index");
    EXPECT_EQ(receipt_of(kChat, chat("Hi", fields_of(one))).dump(), one.dump());
  }
}

TEST_F(ReceiptTest, AnOpenLengthIsWhatTheWindowLeaves) {
  FakeOptions fake;
  fake.window = 100;
  start(fake);
  const Json receipt = receipt_of(kChat, chat("Hi"));
  const auto prompt = service().tokenizer()->encode("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(receipt["max_tokens"], 100 - prompt.size());
}

TEST_F(ReceiptTest, ATemplateThatPrintsTheTimeGetsItFromTheRequest) {
  FakeOptions fake;
  fake.dated = true;
  start(fake);
  const Json given = chat("Hi<|im_end|>", {{"max_tokens", 8}, {"steadfast", {{"now", 1700000000}}}});
  const Json receipt = receipt_of(kChat, given);
  EXPECT_EQ(receipt["now"], 1700000000);
  const Json tokens = post("/tokenize", given).json()["tokens"];
  EXPECT_EQ(service().tokenizer()->decode(tokens.get<std::vector<TokenId>>(), false).substr(0, 20),
            "2023-11-14 22:13:20\n");
  EXPECT_EQ(receipt["prompt_ids_sha256"], sha256_of_ids(tokens.get<std::vector<TokenId>>()));

  const auto before = clock_seconds();
  const Json dated = receipt_of(kChat, chat("Hi", {{"max_tokens", 8}}));
  const auto now = dated["now"].get<std::int64_t>();
  EXPECT_GE(now, before);
  EXPECT_LE(now, clock_seconds());
  EXPECT_EQ(receipt_of(kChat, chat("Hi", fields_of(dated))).dump(), dated.dump());
  EXPECT_NE(receipt_of(kChat, chat("Hi", {{"max_tokens", 8}, {"steadfast", {{"now", now - 1}}}}))["request_digest"],
            dated["request_digest"]);
}

TEST_F(ReceiptTest, TheTimeMustBeATime) {
  start();
  for (const Json& now : {Json("today"), Json(-1), Json(1e15), Json(1.5)}) {
    const Reply reply = post(kChat, chat("Hi", {{"steadfast", {{"now", now}}}}));
    EXPECT_EQ(reply.status, 400) << now;
    EXPECT_EQ(reply.json()["error"]["param"], "steadfast.now");
  }
  EXPECT_EQ(post(kChat, chat("Hi", {{"steadfast", 5}})).status, 400);
}

}  // namespace
}  // namespace steadfast::testing
