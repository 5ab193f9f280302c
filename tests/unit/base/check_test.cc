// CHECK: passes silently and without evaluating its message's values, fails with condition, place and values.
#include "base/check.h"

#include <gtest/gtest.h>

namespace steadfast {
namespace {

TEST(Check, PassesWithoutEvaluatingTheMessage) {
  int evaluated = 0;
  auto count = [&] { return ++evaluated; };
  CHECK(1 + 1 == 2, "never printed {}", count());
  EXPECT_EQ(evaluated, 0);
}

TEST(Check, IsOneStatement) {
  bool reached = false;
  if (reached)
    CHECK(false, "not reached");
  else
    reached = true;
  EXPECT_TRUE(reached);
}

TEST(CheckDeathTest, PrintsConditionPlaceAndValues) {
  const int rows = 3;
  EXPECT_DEATH(CHECK(rows == 4, "rows {}", rows), "check_test.cc:[0-9]+: CHECK\\(rows == 4\\) failed: rows 3");
}

}  // namespace
}  // namespace steadfast
