// Patterns: White_Space, Unicode case folding, refusals, and matches that backtrack without end.
#include "text/regex.h"

#include <gtest/gtest.h>

#include "sample.h"

namespace steadfast {
namespace {

std::string first(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern);
  EXPECT_TRUE(regex) << regex.message();
  const auto match = Regex::Matcher(*regex).find(text, 0);
  return match ? std::string(text.substr(match->begin, match->end - match->begin)) : "none";
}

TEST(Regex, WhiteSpaceIsUnicodes) {
  EXPECT_EQ(first(R"(\s+)", "a \u0085\u2028\u3000b"), " \u0085\u2028\u3000");
  EXPECT_EQ(first(R"(\s)", "\u180e\u200b"), "none");
  EXPECT_EQ(first(R"([^\s]+)", " \u180e\u200b "), "\u180e\u200b");
  EXPECT_EQ(first(R"(\S+)", " \u180ex "), "\u180ex");
  EXPECT_EQ(first(R"([\S]+)", " \u180ex "), "\u180ex");
}

TEST(Regex, PropertiesAndFolding) {
  EXPECT_EQ(first(R"(\p{L}+)", "1ñандр人2"), "ñандр人");
  EXPECT_EQ(first(R"((?i:'s))", "x'ſ"), "'ſ");
  EXPECT_EQ(first(R"('s)", "x'ſ"), "none");
  EXPECT_EQ(first(R"([]x]+)", "a]x]"), "]x]");
  EXPECT_EQ(first(R"([[:punct:]]+)", "a;.b"), ";.");
}

TEST(Regex, RefusesWhatItCannotReadAlike) {
  for (const char* pattern : {"", "[", "(", "*", "a\\", R"(\h)", R"(\X)", R"([a&&b])", R"([a[bc]])", "(?m:.)", R"(\C)",
                              "(?<=a+)b", R"(\p{Nothing})", "[[:alpha"}) {
    EXPECT_FALSE(Regex::compile(pattern)) << pattern;
  }
  EXPECT_FALSE(Regex::compile(std::string(20000, 'a')));
  EXPECT_FALSE(Regex::compile(std::string(10000, '(') + std::string(6000, ')')));
  EXPECT_FALSE(Regex::literal(""));
}

TEST(Regex, ALiteralHasNoMetacharacters) {
  const auto regex = Regex::literal("a.b");
  ASSERT_TRUE(regex);
  EXPECT_FALSE(Regex::Matcher(*regex).find("axb", 0));
  EXPECT_EQ(Regex::Matcher(*regex).find("xa.b", 0)->begin, 1u);
}

TEST(Regex, EndlessBacktrackingEndsWithoutAMatch) {
  const auto regex = Regex::compile("(a+)+$b|(x+x+)+y");
  ASSERT_TRUE(regex);
  const test::Stopwatch watch;
  EXPECT_FALSE(Regex::Matcher(*regex).find(std::string(40, 'x'), 0));
  EXPECT_LT(watch.seconds(), 20);
}

TEST(Regex, ADeepMatchNeedsNoStack) {
  const auto regex = Regex::compile("(?:a|b)+c");
  ASSERT_TRUE(regex);
  const std::string text = std::string(300'000, 'a') + "c";
  const auto match = Regex::Matcher(*regex).find(text, 0);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->end, text.size());
}

}  // namespace
}  // namespace steadfast
