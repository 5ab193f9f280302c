// NFC against utf8proc's own, and long runs of combining marks.
#include "text/normalizer.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "sample.h"
#include "text/utf8.h"

namespace steadfast {
namespace {

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(Normalizer{true}.apply(text, storage));
}

TEST(Normalizer, Examples) {
  EXPECT_EQ(nfc("plain"), "plain");
  EXPECT_EQ(nfc("cafe\u0301"), "caf\u00e9");
  EXPECT_EQ(nfc("xe\u0301 \u0301"), "x\u00e9 \u0301");
  EXPECT_EQ(nfc("\u0301a"), "\u0301a");
  EXPECT_EQ(nfc("\u00e9\u0301"), "\u00e9\u0301");
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307");                                    // ordered
  EXPECT_EQ(nfc("d\u0307\u0323"), "\u1e0d\u0307");                                     // and composed
  EXPECT_EQ(nfc("\u1100\u1161\u11a8\u1100"), "\uac01\u1100");                          // Hangul
  EXPECT_EQ(nfc("\u212b\u2126\u0958\u0344"), "\u00c5\u03a9\u0915\u093c\u0308\u0301");  // singletons and exclusions
  std::string storage;
  EXPECT_EQ(Normalizer{}.apply("e\u0301", storage), "e\u0301");
}

TEST(Normalizer, EqualsTheLibrarysOnRandomText) {
  test::Dice dice(2);
  for (int round = 0; round < 4000; ++round) {
    std::string text = test::random_text(dice, 6);
    for (int i = 0; i < 6; ++i) append_utf8(text, static_cast<char32_t>(0x2F0 + test::roll(dice, 0x80)));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> expected(
        utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str())), std::free);
    if (text.find('\0') != std::string::npos) continue;
    ASSERT_EQ(nfc(text), reinterpret_cast<const char*>(expected.get()));
  }
}

TEST(Normalizer, ALongRunOfMarksTakesNoQuadraticTime) {
  std::string text = "a";
  for (int i = 0; i < 250'000; ++i) text += "\u0301\u0323";
  const test::Stopwatch watch;
  const std::string result = nfc(text);
  EXPECT_LT(watch.seconds(), 20);
  EXPECT_TRUE(result.starts_with("\u1ea1\u0323"));
  EXPECT_TRUE(result.ends_with("\u0301"));
}

}  // namespace
}  // namespace steadfast
