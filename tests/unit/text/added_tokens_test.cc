// Added tokens: leftmost-longest, and each flag.
#include "text/added_tokens.h"

#include <gtest/gtest.h>

#include "sample.h"

namespace steadfast {
namespace {

// "[id]" for a token, the text between as it is.
std::string found(const std::vector<AddedToken>& tokens, std::string_view text) {
  const auto added = AddedTokens::make(tokens, Normalizer{});
  EXPECT_TRUE(added) << added.message();
  std::vector<TextSegment> segments;
  added->find_raw(text, segments);
  std::string result;
  for (const auto& segment : segments) {
    result += segment.id >= 0 ? "[" + std::to_string(segment.id) + "]" : std::string(segment.text);
  }
  return result;
}

TEST(AddedTokens, LeftmostThenLongest) {
  const std::vector<AddedToken> tokens = {
      {.id = 1, .text = "<a"}, {.id = 2, .text = "<abc>"}, {.id = 3, .text = "bc>d"}};
  EXPECT_EQ(found(tokens, "x<abc>d"), "x[2]d");
  EXPECT_EQ(found(tokens, "<ab<a<abc"), "[1]b[1][1]bc");
  EXPECT_EQ(found(tokens, "abc>d"), "a[3]");
  EXPECT_EQ(found(tokens, ""), "");
  EXPECT_EQ(found({}, "<a"), "<a");
}

TEST(AddedTokens, SingleWord) {
  const std::vector<AddedToken> tokens = {{.id = 1, .text = "w", .single_word = true}};
  EXPECT_EQ(found(tokens, "w (w) w.w"), "[1] ([1]) [1].[1]");
  EXPECT_EQ(found(tokens, "ww wé éw w_ w1 w\u0301 w\u200d w\u24b6"), "ww wé éw w_ w1 w\u0301 w\u200d w\u24b6");
}

TEST(AddedTokens, WhiteSpaceBesideIsTaken) {
  const std::vector<AddedToken> tokens = {{.id = 1, .text = "L", .lstrip = true},
                                          {.id = 2, .text = "R", .rstrip = true}};
  EXPECT_EQ(found(tokens, "a \u3000\nL b R \u0085 c"), "a[1] b [2]c");
  EXPECT_EQ(found(tokens, "R L L"), "[2][1][1]");
  EXPECT_EQ(found(tokens, " L"), "[1]");
  EXPECT_EQ(found(tokens, "é L\u180e"), "é[1]\u180e");
}

TEST(AddedTokens, NormalizedOnesAreFoundInNormalizedText) {
  const Normalizer nfc{true};
  const auto added = AddedTokens::make({{.id = 1, .text = "e\u0301", .normalized = true}}, nfc);
  ASSERT_TRUE(added);
  std::vector<TextSegment> segments;
  added->find_normalized("x\u00e9", segments);
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[1].id, 1);
  segments.clear();
  added->find_raw("e\u0301", segments);
  EXPECT_EQ(segments.at(0).id, -1);
}

TEST(AddedTokens, LongTextsAndTokens) {
  EXPECT_FALSE(AddedTokens::make({{.id = 1, .text = std::string(2000, 'a')}}, Normalizer{}));
  const std::string token(1000, 'a');
  const test::Stopwatch watch;
  EXPECT_EQ(found({{.id = 1, .text = token + "b"}}, std::string(1 << 18, 'a')), std::string(1 << 18, 'a'));
  const std::string spaces(1 << 20, ' ');
  EXPECT_EQ(found({{.id = 1, .text = "L", .lstrip = true, .rstrip = true}}, spaces + "LL" + spaces + "L"), "[1][1][1]");
  EXPECT_LT(watch.seconds(), 20);
}

}  // namespace
}  // namespace steadfast
