// Seeded mutations of tokenizer.json and of GGUF metadata: a Status or a working tokenizer, never a crash.
#include <gtest/gtest.h>

#include <chrono>

#include "formats/gguf.h"
#include "sample.h"

namespace steadfast {
namespace {

constexpr auto kTime = std::chrono::seconds(6);  // of each test; the seeds come in order

// A tokenizer that loaded must work on anything.
void use(const Tokenizer& tokenizer, test::Dice& dice) {
  for (int round = 0; round < 3; ++round) {
    for (const std::string& text : {test::random_text(dice, 12), test::random_bytes(dice, 30)}) {
      for (const bool match : {true, false}) {
        const auto ids = tokenizer.encode(text, {.match_special = match});
        StreamingDetokenizer stream(tokenizer);
        std::string streamed;
        for (const TokenId id : ids) {
          ASSERT_TRUE(tokenizer.contains(id));
          streamed += stream.push(id);
        }
        ASSERT_EQ(streamed + stream.finish(), tokenizer.decode(ids));
      }
    }
  }
}

void mutate_bytes(std::string& text, test::Dice& dice) {
  static const std::string kWords[] = {"null", "-1",      "1e9",  "[",           "]", "{", "}",
                                       "\"",   "\\u0000", "true", "99999999999", "Ġ", ""};
  for (std::size_t i = 1 + test::roll(dice, 4); i > 0 && !text.empty(); --i) {
    const std::size_t at = test::roll(dice, text.size());
    switch (test::roll(dice, 4)) {
      case 0:
        text[at] = static_cast<char>(test::roll(dice, 256));
        break;
      case 1:
        text.erase(at, 1 + test::roll(dice, 20));
        break;
      case 2:
        text.insert(at, kWords[test::roll(dice, std::size(kWords))]);
        break;
      default:
        text.insert(at, text.substr(test::roll(dice, text.size()), test::roll(dice, 60)));
    }
  }
  if (test::roll(dice, 8) == 0) text.resize(test::roll(dice, text.size() + 1));
}

// Puts another value somewhere in a JSON document that stays well formed.
void mutate_value(nlohmann::json& value, test::Dice& dice) {
  if (!value.empty() && value.is_structured() && test::roll(dice, 8) != 0) {
    const auto at = std::next(value.begin(), static_cast<std::ptrdiff_t>(test::roll(dice, value.size())));
    if (test::roll(dice, 12) == 0) {
      value.erase(at);
    } else {
      mutate_value(*at, dice);
    }
    return;
  }
  const nlohmann::json values[] = {nullptr,
                                   true,
                                   0,
                                   -1,
                                   3.5,
                                   2147483647,
                                   1ull << 40,
                                   "",
                                   "a",
                                   "Ġthe",
                                   "<think>",
                                   "a b",
                                   {{"type", "NFC"}},
                                   nlohmann::json::array({"a", "b"}),
                                   {{"Regex", "(a|b)*?"}},
                                   {{"Regex", "\\s*|x"}},
                                   {{"String", " "}},
                                   "Removed",
                                   "MergedWithNext",
                                   "Digits",
                                   "Sequence"};
  value = values[test::roll(dice, std::size(values))];
}

TEST(TokenizerFuzz, Json) {
  const std::string whole = test::sample_json().dump();
  const auto start = std::chrono::steady_clock::now();
  std::size_t loaded = 0, rounds = 0;
  for (; std::chrono::steady_clock::now() - start < kTime; ++rounds) {
    test::Dice dice(rounds);
    std::string text;
    if (rounds % 2 == 0) {
      text = whole;
      mutate_bytes(text, dice);
    } else {
      nlohmann::json json = test::sample_json();
      for (const char* key : {"model", "pre_tokenizer", "added_tokens", "normalizer"}) {
        if (test::roll(dice, 3) == 0) mutate_value(json[key], dice);
      }
      text = json.dump();
    }
    SCOPED_TRACE(rounds);
    const auto tokenizer = Tokenizer::from_json(text);
    if (!tokenizer) continue;
    ++loaded;
    use(*tokenizer, dice);
  }
  EXPECT_GT(loaded, 0u);
  EXPECT_LT(loaded, rounds);
}

TEST(TokenizerFuzz, Gguf) {
  const auto whole = test::gguf_of(test::sample_json(), "qwen35").build();
  const auto start = std::chrono::steady_clock::now();
  std::size_t loaded = 0, rounds = 0;
  for (; std::chrono::steady_clock::now() - start < kTime; ++rounds) {
    test::Dice dice(rounds);
    auto bytes = whole;
    for (std::size_t i = 1 + test::roll(dice, 3); i > 0; --i) {
      bytes[test::roll(dice, bytes.size())] = static_cast<std::byte>(test::roll(dice, 256));
    }
    if (test::roll(dice, 16) == 0) bytes.resize(test::roll(dice, bytes.size()));
    SCOPED_TRACE(rounds);
    const auto file = GgufFile::from_bytes(bytes, "fuzz.gguf");
    if (!file) continue;
    const auto tokenizer = Tokenizer::from_gguf(**file);
    if (!tokenizer) continue;
    ++loaded;
    use(*tokenizer, dice);
  }
  EXPECT_GT(loaded, 0u);
  EXPECT_LT(loaded, rounds);
}

}  // namespace
}  // namespace steadfast
