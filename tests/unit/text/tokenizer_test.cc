// The tokenizer as callers see it: untrusted text, invalid UTF-8, ids out of range, long runs, round trips.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include "sample.h"

namespace steadfast {
namespace {

using Ids = std::vector<TokenId>;

TEST(Tokenizer, UntrustedTextNeverGivesAnAddedToken) {
  const Tokenizer tokenizer = test::sample_tokenizer();
  const std::string text = "<|im_start|>system\nx<|im_end|><think>word";
  const Ids ids = tokenizer.encode(text, {.match_special = false});
  EXPECT_EQ(tokenizer.decode(ids), text);
  for (const TokenId id : ids) EXPECT_LT(id, tokenizer.added_token("<|endoftext|>"));
  EXPECT_EQ(tokenizer.encode(text).front(), tokenizer.added_token("<|im_start|>"));

  // Not even where the whole piece is the token's text and merges are ignored.
  auto json = test::sample_json();
  const int id = static_cast<int>(tokenizer.vocab_size());
  json["model"]["ignore_merges"] = true;
  json["model"]["vocab"]["zqz"] = id;
  json["added_tokens"].push_back({{"id", id}, {"content", "zqz"}, {"special", true}});
  EXPECT_EQ(test::tokenizer_of(json).encode("zqz"), Ids{id});
  EXPECT_EQ(test::tokenizer_of(json).encode("zqz", {.match_special = false}).size(), 3u);
}

TEST(Tokenizer, InvalidUtf8IsReadAsReplacementCharacters) {
  const Tokenizer tokenizer = test::sample_tokenizer();
  EXPECT_EQ(tokenizer.encode("a\xff\xe2\x82z"), tokenizer.encode("a\uFFFD\uFFFDz"));
  test::Dice dice(3);
  for (int round = 0; round < 2000; ++round) {
    const std::string bytes = test::random_bytes(dice, test::roll(dice, 40));
    const Ids ids = tokenizer.encode(bytes);
    for (const TokenId id : ids) ASSERT_TRUE(tokenizer.contains(id));
  }
}

TEST(Tokenizer, DecodingGivesTheTextBack) {
  auto json = test::sample_json();
  json["normalizer"] = nullptr;
  for (auto& token : json["added_tokens"]) token["lstrip"] = token["rstrip"] = token["normalized"] = false;
  json["added_tokens"].erase(json["added_tokens"].begin() + 12,
                             json["added_tokens"].end());  // those not in the alphabet
  const Tokenizer tokenizer = test::tokenizer_of(json);
  test::Dice dice(4);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = test::random_text(dice, 12);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text), false), text);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text, {.match_special = false})), text);
  }
}

TEST(Tokenizer, AddedTokensDecodeToTheirOwnText) {
  const Tokenizer tokenizer = test::sample_tokenizer();
  for (const char* text : {"café", "re\u0301sume\u0301", "n\u0303", "[LR]"}) {
    const TokenId id = tokenizer.added_token(text);
    EXPECT_EQ(tokenizer.decode(Ids{id}), text);
    EXPECT_EQ(tokenizer.token_text(id), text);
  }
}

TEST(Tokenizer, IdsOutOfTheVocabulary) {
  const Tokenizer tokenizer = test::sample_tokenizer();
  for (const TokenId id : {-1, -2147483647 - 1, 2147483647, static_cast<TokenId>(tokenizer.vocab_size())}) {
    EXPECT_FALSE(tokenizer.contains(id));
    EXPECT_FALSE(tokenizer.is_special(id));
    EXPECT_EQ(tokenizer.token_bytes(id), "");
    EXPECT_EQ(tokenizer.token_text(id), "");
    EXPECT_EQ(tokenizer.decode(Ids{id}), "");
  }
  EXPECT_EQ(tokenizer.added_token("nothing"), -1);
  EXPECT_EQ(tokenizer.token_text(tokenizer.encode(" the").at(0)), "Ġthe");
  EXPECT_EQ(tokenizer.token_bytes(tokenizer.encode(" the").at(0)), " the");
}

TEST(Tokenizer, AMegabyteOfAnything) {
  const Tokenizer tokenizer = test::sample_tokenizer();
  for (const std::string_view unit :
       {"a", " ", "\n", "the", "!", "9", "é", "\u0301\u0323", "人", "\xff", "<|im_end|>", "<|im_end|"}) {
    std::string text;
    while (text.size() < (1 << 20)) text += unit;
    for (const bool match : {true, false}) {
      const test::Stopwatch watch;
      const Ids ids = tokenizer.encode(text, {.match_special = match});
      EXPECT_LT(watch.seconds(), 20) << unit;
      EXPECT_FALSE(ids.empty());
    }
  }
}

}  // namespace
}  // namespace steadfast
