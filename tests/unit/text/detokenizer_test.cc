// Streaming: pushes and finish together equal decode(), whatever the ids; whole characters only.
#include <gtest/gtest.h>

#include "sample.h"
#include "text/utf8.h"

namespace steadfast {
namespace {

using Ids = std::vector<TokenId>;

void check(const Tokenizer& tokenizer, const Ids& ids) {
  for (const bool skip : {true, false}) {
    StreamingDetokenizer stream(tokenizer, skip);
    for (int again = 0; again < 2; ++again) {  // finish() leaves it as new
      std::string text;
      for (const TokenId id : ids) {
        const std::string piece = stream.push(id);
        ASSERT_EQ(valid_utf8_prefix(piece), piece.size());
        text += piece;
      }
      text += stream.finish();
      ASSERT_EQ(text, tokenizer.decode(ids, skip));
    }
  }
}

TEST(StreamingDetokenizer, EqualsDecodeOnRandomIds) {
  const Tokenizer tokenizer = test::sample_tokenizer();
  test::Dice dice(6);
  for (int round = 0; round < 3000; ++round) {
    Ids ids;
    for (std::size_t i = test::roll(dice, 20); i > 0; --i) {
      ids.push_back(static_cast<TokenId>(test::roll(dice, tokenizer.vocab_size() + 2)) - 1);
    }
    check(tokenizer, ids);
  }
}

TEST(StreamingDetokenizer, EqualsDecodeOnTextsAndBrokenBytes) {
  const Tokenizer tokenizer = test::sample_tokenizer();
  test::Dice dice(8);
  for (int round = 0; round < 1000; ++round) {
    check(tokenizer, tokenizer.encode(test::random_text(dice, 10)));
    Ids ids;
    for (const char byte : test::random_bytes(dice, test::roll(dice, 30))) {
      for (TokenId id = 0; id < 256; ++id) {
        if (tokenizer.token_bytes(id) == std::string_view(&byte, 1)) ids.push_back(id);
      }
    }
    check(tokenizer, ids);
  }
}

TEST(StreamingDetokenizer, HoldsAnUnfinishedCharacter) {
  const Tokenizer tokenizer = test::sample_tokenizer();
  const Ids ids = tokenizer.encode("€");
  ASSERT_EQ(ids.size(), 3u);
  StreamingDetokenizer stream(tokenizer);
  EXPECT_EQ(stream.push(ids[0]), "");
  EXPECT_EQ(stream.push(ids[1]), "");
  EXPECT_EQ(stream.push(tokenizer.added_token("<|im_end|>")), "");  // skipped: nothing came between
  EXPECT_EQ(stream.push(ids[2]), "€");
  EXPECT_EQ(stream.push(ids[0]), "");
  EXPECT_EQ(stream.push(ids[1]), "");
  EXPECT_EQ(stream.push(tokenizer.encode("x")[0]), "\uFFFDx");
  EXPECT_EQ(stream.push(ids[0]), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

}  // namespace
}  // namespace steadfast
