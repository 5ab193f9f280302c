// Helpers for data that nobody vouches for.
#include "formats/untrusted.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace steadfast {
namespace {

TEST(Untrusted, Utf8) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
  for (const char* bad : {"\x80", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "a\xFF"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
  }
}

TEST(Untrusted, ShownIsPrintable) {
  EXPECT_EQ(shown("a\n\x1B\xFF\xC3\xA9"), "'a\\x0A\\x1B\\xFF\xC3\xA9'");
  EXPECT_EQ(shown(std::string(81, 'x')), "'" + std::string(80, 'x') + "...'");
}

TEST(Untrusted, CheckedBytes) {
  const auto bytes = [](DType dtype, std::vector<std::int64_t> shape) { return checked_bytes(dtype, shape); };
  EXPECT_EQ(bytes(DType::kF32, {}), 4u);
  EXPECT_EQ(bytes(DType::kF32, {2, 3}), 24u);
  EXPECT_EQ(bytes(DType::kF32, {0, std::int64_t{1} << 62}), 0u);
  EXPECT_EQ(bytes(DType::kF32, {std::int64_t{1} << 62, 4, 0}), std::nullopt) << "elements() would overflow on the way";
  EXPECT_EQ(bytes(DType::kF32, {std::int64_t{1} << 62}), std::nullopt);
  EXPECT_EQ(bytes(DType::kU8, {-1}), std::nullopt);
  EXPECT_EQ(bytes(DType::kQ4_1, {2, 64}), 80u);
  EXPECT_EQ(bytes(DType::kQ4_1, {64, 2}), std::nullopt);
}

}  // namespace
}  // namespace steadfast
