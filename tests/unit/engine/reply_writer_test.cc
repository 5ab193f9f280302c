// Pieces of a reply: whole characters only, nothing of a stop string; together they are decode(), cut at the first one.
#include "engine/reply_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine_sample.h"
#include "text/utf8.h"

namespace steadfast::test {
namespace {

struct Written {
  std::string text;
  std::optional<std::string> matched;
  std::size_t used = 0;  // ids pushed before a match
};

Written write_all(const Tokenizer& tokenizer, const std::vector<std::string>& stop, const std::vector<TokenId>& ids) {
  ReplyWriter writer(&tokenizer, stop);
  Written written;
  const auto take = [&](const std::string& piece) {
    EXPECT_EQ(valid_utf8_prefix(piece), piece.size()) << "a piece splits a character";
    written.text += piece;
  };
  for (const TokenId id : ids) {
    take(writer.push(id));
    ++written.used;
    if (writer.matched()) break;
  }
  if (!writer.matched()) take(writer.finish());
  written.matched = writer.matched();
  return written;
}

// One token a byte: every border that can be.
std::vector<TokenId> bytes_as_ids(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids;
  for (const char byte : text)
    for (TokenId id = 0; id < static_cast<TokenId>(tokenizer.vocab_size()); ++id)
      if (tokenizer.token_bytes(id) == std::string_view(&byte, 1) && !tokenizer.is_special(id)) {
        ids.push_back(id);
        break;
      }
  EXPECT_EQ(ids.size(), text.size());
  return ids;
}

TEST(ReplyWriter, WritesEverythingWithoutStopStrings) {
  const Tokenizer tokenizer = sample_tokenizer();
  const auto written = write_all(tokenizer, {""}, tokenizer.encode("Hello, world €!"));
  EXPECT_EQ(written.text, "Hello, world €!");
  EXPECT_FALSE(written.matched);
}

TEST(ReplyWriter, FindsAStopStringAcrossTokens) {
  const Tokenizer tokenizer = sample_tokenizer();
  const auto written = write_all(tokenizer, {"STOP"}, bytes_as_ids(tokenizer, "one STOP two"));
  EXPECT_EQ(written.text, "one ");
  EXPECT_EQ(written.matched, "STOP");
  EXPECT_EQ(written.used, 8u);  // nothing behind it was waited for
}

TEST(ReplyWriter, ReleasesAHeldBeginningThatCameToNothing) {
  const Tokenizer tokenizer = sample_tokenizer();
  ReplyWriter writer(&tokenizer, {"STOP"});
  std::string text;
  for (const TokenId id : bytes_as_ids(tokenizer, "a STO")) text += writer.push(id);
  EXPECT_EQ(text, "a ");
  for (const TokenId id : bytes_as_ids(tokenizer, "RE")) text += writer.push(id);
  EXPECT_EQ(text, "a STORE");
  for (const TokenId id : bytes_as_ids(tokenizer, " ST")) text += writer.push(id);
  EXPECT_EQ(text, "a STORE ");
  EXPECT_EQ(writer.finish(), "ST");
  EXPECT_FALSE(writer.matched());
}

TEST(ReplyWriter, TheStringThatIsCompleteFirstEndsTheReply) {
  const Tokenizer tokenizer = sample_tokenizer();
  // "bc" is complete before "abcd" could be: alike with one token a byte and with all bytes in few tokens.
  for (const auto& ids : {bytes_as_ids(tokenizer, "x abcd y"), tokenizer.encode("x abcd y")}) {
    const auto written = write_all(tokenizer, {"abcd", "bc"}, ids);
    EXPECT_EQ(written.text, "x a");
    EXPECT_EQ(written.matched, "bc");
  }
  // Complete at the same byte: the longer one, which begins earlier.
  for (const auto& stop : {std::vector<std::string>{"cd", "bcd"}, std::vector<std::string>{"bcd", "cd"}}) {
    const auto written = write_all(tokenizer, stop, bytes_as_ids(tokenizer, "abcd"));
    EXPECT_EQ(written.text, "a");
    EXPECT_EQ(written.matched, "bcd");
  }
}

TEST(ReplyWriter, NeverSplitsACharacter) {
  const Tokenizer tokenizer = sample_tokenizer();
  // The stop string begins with a character whose first bytes others share.
  const auto written = write_all(tokenizer, {"€!"}, bytes_as_ids(tokenizer, "₠ € ₡ €! end"));
  EXPECT_EQ(written.text, "₠ € ₡ ");
}

TEST(ReplyWriter, WritesNothingAfterAMatch) {
  const Tokenizer tokenizer = sample_tokenizer();
  ReplyWriter writer(&tokenizer, {"b"});
  std::string text;
  for (const TokenId id : bytes_as_ids(tokenizer, "abcdef")) text += writer.push(id);
  text += writer.finish();
  EXPECT_EQ(text, "a");
}

TEST(ReplyWriter, WithoutATokenizerHasNoText) {
  ReplyWriter writer(nullptr, {"x"});
  EXPECT_EQ(writer.push(3), "");
  EXPECT_EQ(writer.finish(), "");
  EXPECT_FALSE(writer.matched());
}

// The first stop string by where it ends; of those that end together, the one that begins first.
std::string cut(const std::string& text, const std::vector<std::string>& stop) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const auto& s : stop)
      if (s.size() <= end && text.compare(end - s.size(), s.size(), s) == 0) longest = std::max(longest, s.size());
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

TEST(ReplyWriter, PiecesTogetherAreDecodeCutAtTheFirstStopString) {
  const Tokenizer tokenizer = sample_tokenizer();
  std::mt19937_64 dice(1);
  const std::string letters[] = {"a", "b", "ab", "ba", "é", "€", " "};
  const auto random_text = [&](std::size_t parts) {
    std::string text;
    for (std::size_t i = 0; i < parts; ++i) text += letters[dice() % std::size(letters)];
    return text;
  };
  int matches = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stop;
    for (std::size_t i = dice() % 4; i > 0; --i) stop.push_back(random_text(1 + dice() % 4));
    const std::string text = random_text(dice() % 16);
    const auto ids = round % 2 == 0 ? tokenizer.encode(text) : bytes_as_ids(tokenizer, text);
    ASSERT_EQ(tokenizer.decode(ids), text);
    const auto written = write_all(tokenizer, stop, ids);
    ASSERT_EQ(written.text, cut(text, stop)) << "of \"" << text << "\", stop strings " << testing::PrintToString(stop);
    if (written.matched) ++matches;
  }
  EXPECT_GT(matches, 500);
}

TEST(ReplyWriter, PiecesOfAnyIdsTogetherAreDecode) {
  const Tokenizer tokenizer = sample_tokenizer();
  std::mt19937_64 dice(2);
  for (int round = 0; round < 1000; ++round) {
    std::vector<TokenId> ids(dice() % 30);
    for (TokenId& id : ids) id = static_cast<TokenId>(dice() % tokenizer.vocab_size());
    ASSERT_EQ(write_all(tokenizer, {"\x01never\x01"}, ids).text, tokenizer.decode(ids));
  }
}

}  // namespace
}  // namespace steadfast::test
