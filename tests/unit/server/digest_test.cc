// Hashes against published vectors, identifiers, words fit to be shown.
#include "server/digest.h"

#include <gtest/gtest.h>

#include "server/api_error.h"
#include "server/receipt.h"

namespace steadfast {
namespace {

// FIPS 180-4's example vectors.
TEST(Digest, KnownAnswers) {
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Digest, IdsAreLittleEndianWords) {
  const std::vector<TokenId> ids = {1, 258};
  EXPECT_EQ(sha256_of_ids(ids), hex(sha256(std::string("\1\0\0\0\2\1\0\0", 8))));
}

TEST(Digest, ComparesWhole) {
  const Sha256 a = sha256("a");
  Sha256 b = a;
  EXPECT_TRUE(equal_in_constant_time(a, b));
  b.back() ^= 1;
  EXPECT_FALSE(equal_in_constant_time(a, b));
}

TEST(Digest, RandomHexDiffers) {
  EXPECT_EQ(random_hex(12).size(), 24U);
  EXPECT_NE(random_hex(12), random_hex(12));
}

TEST(ApiErrorText, ShowsOnlyCleanWords) {
  EXPECT_EQ(shown_word("a\x1b[31m\r\nb\xff é"), "a?[31m??b? é");
  EXPECT_EQ(shown_word(std::string(200, 'x')), std::string(80, 'x') + "...");
}

TEST(ApiErrorText, HasOpenAisForm) {
  EXPECT_EQ(to_json(bad_field("n", "no {}", 1)).dump(),
            R"({"error":{"message":"no 1","type":"invalid_request_error","param":"n","code":null}})");
  EXPECT_EQ(to_json(ApiError{503, "full", "", "queue_full"})["error"]["type"], "overloaded_error");
}

TEST(ReceiptText, FloatsAreShortest) { EXPECT_EQ(shortest(0.7f).dump(), "0.7"); }

}  // namespace
}  // namespace steadfast
