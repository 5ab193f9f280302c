// UTF-8: well-formed characters, and the maximal subparts of Unicode 3.9 for the others.
#include "text/utf8.h"

#include <gtest/gtest.h>

#include "sample.h"
#include "text/byte_alphabet.h"

namespace steadfast {
namespace {

constexpr char kR[] = "\uFFFD";

std::string times(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += kR;
  return text;
}

TEST(Utf8, TheExamplesOfTheStandard) {
  // Unicode 3.9, tables 3-8 to 3-11.
  EXPECT_EQ(repaired_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), times(8) + "A");
  EXPECT_EQ(repaired_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), times(8) + "A");
  EXPECT_EQ(repaired_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), times(5) + "A" + times(2) + "B");
  EXPECT_EQ(repaired_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), times(4) + "A");
}

TEST(Utf8, EveryCharacterIsOneStep) {
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_utf8(text, code);
    const Utf8Step step = utf8_step(text, 0);
    ASSERT_TRUE(step.valid && step.code == code && step.bytes == text.size()) << std::uint32_t{code};
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      const Utf8Step part = utf8_step(std::string_view(text).substr(0, cut), 0);
      ASSERT_TRUE(!part.valid && part.unfinished && part.bytes == cut) << std::uint32_t{code};
    }
  }
}

TEST(Utf8, RepairGivesWellFormedTextAndKeepsWellFormedText) {
  test::Dice dice(1);
  for (int round = 0; round < 3000; ++round) {
    const std::string bytes = test::random_bytes(dice, test::roll(dice, 24));
    const std::string repaired = repaired_utf8(bytes);
    ASSERT_EQ(valid_utf8_prefix(repaired), repaired.size());
    ASSERT_EQ(repaired_utf8(repaired), repaired);
    const std::string text = test::random_text(dice, 12);
    ASSERT_EQ(valid_utf8_prefix(text), text.size());
  }
}

TEST(Utf8, WhiteSpaceIsUnicodes) {
  for (const char32_t code :
       {0x9, 0xA, 0xB, 0xC, 0xD, 0x20, 0x85, 0xA0, 0x1680, 0x2000, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}) {
    EXPECT_TRUE(is_white_space(code)) << std::uint32_t{code};
  }
  for (const char32_t code : {0x8, 0xE, 0x1C, 0x180E, 0x200B, 0x2060, 0xFEFF}) {
    EXPECT_FALSE(is_white_space(code)) << std::uint32_t{code};
  }
}

TEST(ByteAlphabet, EveryByteHasItsCharacter) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  EXPECT_EQ(alphabet_to_bytes(bytes_to_alphabet(all)), all);
  EXPECT_EQ(bytes_to_alphabet(" \n"), "ĠĊ");
  EXPECT_EQ(bytes_to_alphabet("\xAD\xFF"), "Ńÿ");
  EXPECT_EQ(alphabet_to_bytes("a b"), std::nullopt);
  EXPECT_EQ(alphabet_to_bytes("ń"), std::nullopt);  // the one after the alphabet's last
}

}  // namespace
}  // namespace steadfast
