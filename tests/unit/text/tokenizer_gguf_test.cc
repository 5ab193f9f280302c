// GGUF metadata: the same tokenizer as from JSON, token types, and a sentence for what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "sample.h"

namespace steadfast {
namespace {

using test::GgufBuilder;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;
using Types = std::vector<std::int32_t>;

Result<Tokenizer> load(const GgufBuilder& builder) {
  const auto bytes = builder.build();
  const auto file = GgufFile::from_bytes(bytes, "test.gguf");
  EXPECT_TRUE(file) << file.message();
  return Tokenizer::from_gguf(**file);
}

GgufBuilder small(const Texts& tokens, const Types& types, const Texts& merges, const std::string& pre = "gpt-2") {
  GgufBuilder builder;
  builder.add_kv("tokenizer.ggml.model", "gpt2").add_kv("tokenizer.ggml.pre", pre);
  builder.add_kv("tokenizer.ggml.tokens", tokens).add_kv("tokenizer.ggml.token_type", types);
  builder.add_kv("tokenizer.ggml.merges", merges);
  return builder;
}

void expect_error(const GgufBuilder& builder, const char* part) {
  const auto result = load(builder);
  ASSERT_FALSE(result) << part;
  EXPECT_THAT(result.message(), HasSubstr(part));
}

TEST(TokenizerGguf, EqualsTheSameTokensFromJson) {
  auto json = test::sample_json();
  for (auto& token : json["added_tokens"]) {  // GGUF has none of these flags
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) token[flag] = false;
  }
  const Tokenizer expected = test::tokenizer_of(json);
  const auto tokenizer = load(test::gguf_of(json, "qwen2"));
  ASSERT_TRUE(tokenizer) << tokenizer.message();
  ASSERT_EQ(tokenizer->vocab_size(), expected.vocab_size());
  test::Dice dice(9);
  for (int round = 0; round < 500; ++round) {
    const std::string text = test::random_text(dice, 10);
    const auto ids = tokenizer->encode(text);
    ASSERT_EQ(ids, expected.encode(text)) << text;
    ASSERT_EQ(tokenizer->decode(ids), expected.decode(ids));
  }
}

TEST(TokenizerGguf, TokenTypes) {
  const auto tokenizer = load(small({"a", "b", "ab", "<c>", "<u>", "<k>", "[PAD]"}, {1, 1, 1, 3, 4, 2, 5}, {"a b"}));
  ASSERT_TRUE(tokenizer) << tokenizer.message();
  EXPECT_EQ(tokenizer->encode("ab<c><u><k>[PAD]"), (std::vector<TokenId>{2, 3, 4, 5}));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{2, 3, 4, 5, 6}, true), "ab<u>");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{2, 3, 4, 5, 6}, false), "ab<c><u><k>[PAD]");
  EXPECT_EQ(tokenizer->added_token("<u>"), 4);
  EXPECT_EQ(tokenizer->added_token("[PAD]"), -1);
  EXPECT_TRUE(tokenizer->contains(6));
}

TEST(TokenizerGguf, LlamaTakesWholeTokensFirst) {
  const Texts tokens = {"a", "b", "ab", "aba"};
  EXPECT_EQ(load(small(tokens, {1, 1, 1, 1}, {"a b"}, "llama-bpe"))->encode("aba"), std::vector<TokenId>{3});
  EXPECT_EQ(load(small(tokens, {1, 1, 1, 1}, {"a b"}, "gpt-2"))->encode("aba"), (std::vector<TokenId>{2, 0}));
}

TEST(TokenizerGguf, Errors) {
  const Texts tokens = {"a", "b", "ab"};
  const Types types = {1, 1, 1};
  expect_error(GgufBuilder(), "tokenizer.ggml.model");
  expect_error(GgufBuilder().add_kv("tokenizer.ggml.model", "llama"), "\"llama\"");
  expect_error(GgufBuilder().add_kv("tokenizer.ggml.model", 7), "tokenizer.ggml.model");
  expect_error(GgufBuilder().add_kv("tokenizer.ggml.model", "gpt2"), "tokenizer.ggml.pre");
  expect_error(small(tokens, types, {"a b"}, "default"), "pre-tokenizer \"default\"");
  expect_error(small(tokens, {1, 1}, {"a b"}), "2 token types");
  expect_error(small(tokens, {1, 1, 6}, {"a b"}), "type 6");
  expect_error(small(tokens, {1, 1, -1}, {"a b"}), "type -1");
  expect_error(small({"a", "b", "a"}, types, {}), "two ids");
  expect_error(small({"a", "b", "\xff"}, types, {}), "UTF-8");
  expect_error(small({"a", "b", "\xc3"}, {1, 1, 4}, {}), "UTF-8");
  expect_error(small({}, {}, {}), "empty");
  expect_error(small({"<c>"}, {3}, {}), "empty");
  expect_error(small(tokens, types, {"ab"}), "merge 0");
  expect_error(small(tokens, types, {"a b", "a a"}), "\"aa\"");
  expect_error(small(tokens, types, {""}), "merge 0");
  GgufBuilder scalar;
  scalar.add_kv("tokenizer.ggml.model", "gpt2").add_kv("tokenizer.ggml.pre", "gpt-2");
  expect_error(scalar, "tokenizer.ggml.tokens");
  expect_error(scalar.add_kv("tokenizer.ggml.tokens", std::vector<std::int32_t>{1, 2}), "tokenizer.ggml.merges");
  expect_error(scalar.add_kv("tokenizer.ggml.merges", std::vector<std::int32_t>{1, 2}), "token 0");
}

}  // namespace
}  // namespace steadfast
