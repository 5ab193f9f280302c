// Status and Result: errors carry their sentence, values are moved out, and misuse of a Result is caught.
#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace steadfast {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Status::error("{} is odd; give an even number", value);
  return value / 2;
}

TEST(Status, IsOkByDefault) {
  const Status status;
  EXPECT_TRUE(status.is_ok());
  EXPECT_TRUE(static_cast<bool>(Status::ok()));
  EXPECT_EQ(status.message(), "ok");
}

TEST(Status, ErrorCarriesItsSentence) {
  const Status status = Status::error("tensor {} has {} bytes; {} are expected", "a.weight", 12, 16);
  EXPECT_FALSE(status.is_ok());
  EXPECT_FALSE(static_cast<bool>(status));
  EXPECT_EQ(status.message(), "tensor a.weight has 12 bytes; 16 are expected");
}

TEST(Status, AnEmptySentenceIsStillAnError) { EXPECT_FALSE(Status::error("{}", "").is_ok()); }

TEST(Status, BracesInValuesAreNotFormatted) {
  EXPECT_EQ(Status::error("unknown key '{}'", "{0}{}").message(), "unknown key '{0}{}'");
}

TEST(Result, HoldsAValueOrAnError) {
  Result<int> four = half(8);
  ASSERT_TRUE(four.is_ok());
  EXPECT_EQ(*four, 4);
  EXPECT_TRUE(four.status().is_ok());
  Result<int> odd = half(7);
  EXPECT_FALSE(odd.is_ok());
  EXPECT_EQ(odd.message(), "7 is odd; give an even number");
}

TEST(Result, ValueIsMovedOut) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  std::unique_ptr<int> owned = std::move(result).value();
  ASSERT_NE(owned, nullptr);
  EXPECT_EQ(*owned, 5);
  auto make = []() -> Result<std::vector<std::string>> { return std::vector<std::string>{"a", "b"}; };
  EXPECT_EQ(make()->size(), 2u);
  EXPECT_EQ((*make())[1], "b");
}

TEST(Result, ErrorsPassOnToOtherTypes) {
  auto text = [](int value) -> Result<std::string> {
    Result<int> number = half(value);
    if (!number) return number.status();
    return std::to_string(*number);
  };
  EXPECT_EQ(*text(4), "2");
  EXPECT_EQ(text(5).message(), "5 is odd; give an even number");
}

TEST(ResultDeathTest, ValueOfAFailedResultPrintsItsSentence) {
  EXPECT_DEATH(half(3).value(), "value of a failed Result: 3 is odd");
}

TEST(ResultDeathTest, AnOkStatusIsNoError) {
  EXPECT_DEATH(Result<int>{Status::ok()}, "a Result without a value needs an error");
}

}  // namespace
}  // namespace steadfast
