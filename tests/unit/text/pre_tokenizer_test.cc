// Pieces of the named patterns and of every kind of step.
#include "text/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample.h"

namespace steadfast {
namespace {

using ::testing::ElementsAre;
using Pieces = std::vector<std::string>;

Pieces pieces(const PreTokenizer& pre_tokenizer, std::string_view text) {
  Pieces result;
  PreTokenizer::Run run(pre_tokenizer, [&](std::string_view piece) { result.emplace_back(piece); });
  run(text);
  return result;
}

Pieces named(std::string_view pre, std::string_view text) {
  const auto pre_tokenizer = PreTokenizer::of_gguf(pre);
  EXPECT_TRUE(pre_tokenizer) << pre_tokenizer.message();
  return pieces(*pre_tokenizer, text);
}

Pieces split(std::string_view pattern, SplitBehavior behavior, bool invert, std::string_view text) {
  PreTokenizer pre_tokenizer;
  EXPECT_TRUE(pre_tokenizer.add(SplitStep{*Regex::compile(pattern), behavior, invert}));
  return pieces(pre_tokenizer, text);
}

TEST(PreTokenizer, NamedPatterns) {
  EXPECT_THAT(named("smollm", "world! 123"), ElementsAre("world", "!", " ", "1", "2", "3"));
  EXPECT_THAT(named("gpt-2", "world! 123"), ElementsAre("world", "!", " 123"));
  EXPECT_THAT(named("qwen2", "world! 123"), ElementsAre("world", "!", " ", "1", "2", "3"));
  EXPECT_THAT(named("llama-bpe", "world! 12345"), ElementsAre("world", "!", " ", "123", "45"));
  EXPECT_THAT(named("qwen2", "it'S \n\n  x"), ElementsAre("it", "'S", " \n\n", " ", " x"));
  EXPECT_THAT(named("gpt-2", "it'S"), ElementsAre("it", "'", "S"));
  EXPECT_THAT(named("qwen2", "n\u0301n"), ElementsAre("n", "\u0301n"));
  EXPECT_THAT(named("qwen35", "n\u0301n"), ElementsAre("n\u0301n"));
  EXPECT_THAT(named("smollm", "a\u00bd\u2167"), ElementsAre("a", "\u00bd", "\u2167"));
}

TEST(PreTokenizer, AnUnknownNameIsAnError) {
  for (const char* name : {"default", "", "deepseek-llm", "Qwen2"}) {
    const auto result = PreTokenizer::of_gguf(name);
    ASSERT_FALSE(result) << name;
    EXPECT_THAT(result.message(), ::testing::HasSubstr("smollm, gpt-2, qwen2, qwen35"));
  }
}

TEST(PreTokenizer, EveryBehavior) {
  using enum SplitBehavior;
  const std::string_view text = "the-final--countdown";
  EXPECT_THAT(split("-", kRemoved, false, text), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(split("-", kIsolated, false, text), ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(split("-", kMergedWithPrevious, false, text), ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(split("-", kMergedWithNext, false, text), ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(split("-", kContiguous, false, text), ElementsAre("the", "-", "final", "--", "countdown"));
  EXPECT_THAT(split("[a-z]+", kRemoved, true, text), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(split("-", kMergedWithPrevious, false, "--"), ElementsAre("-", "-"));
  EXPECT_THAT(split("-", kMergedWithNext, false, "a-"), ElementsAre("a", "-"));
}

TEST(PreTokenizer, EmptyMatchesCutAndEnd) {
  EXPECT_THAT(split("(?=b)", SplitBehavior::kIsolated, false, "abab"), ElementsAre("a", "ba", "b"));
  EXPECT_THAT(split("x*", SplitBehavior::kIsolated, false, "éxé"), ElementsAre("é", "x", "é"));
}

TEST(PreTokenizer, DigitsAndPrefixSpace) {
  PreTokenizer runs;
  ASSERT_TRUE(runs.add(DigitsStep{false}));
  ASSERT_TRUE(runs.add(PrefixSpaceStep{}));
  EXPECT_THAT(pieces(runs, "12a b34"), ElementsAre(" 12", " a b", " 34"));
  PreTokenizer many;
  for (std::size_t i = 0; i < PreTokenizer::kMaxSteps; ++i) ASSERT_TRUE(many.add(DigitsStep{true}));
  EXPECT_FALSE(many.add(DigitsStep{true}));
  EXPECT_THAT(pieces(many, "1a"), ElementsAre("1", "a"));
}

// Every character of a text comes back, and runs of a megabyte take neither stack nor quadratic time.
TEST(PreTokenizer, LongRuns) {
  const std::size_t size = 1 << 20;
  for (const char* pre : {"smollm", "qwen35"}) {
    for (const std::string_view unit :
         {" ", "\n", " \n", "a", "é", "1", "!", "'s", "\u3000", "\u0301", "人", "\r\n ", "ab\n  "}) {
      std::string text;
      while (text.size() < size) text += unit;
      for (const char* end : {"", " x"}) {
        std::string joined;
        const test::Stopwatch watch;
        for (const auto& piece : named(pre, text + end)) joined += piece;
        ASSERT_LT(watch.seconds(), 20) << pre << " " << unit;
        ASSERT_EQ(joined, text + end) << pre << " " << unit;
      }
    }
  }
}

}  // namespace
}  // namespace steadfast
