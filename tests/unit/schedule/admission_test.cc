// Who starts next: the first that fits, but none is passed for ever, and nobody passes into the background's place.
#include "schedule/admission.h"

#include <gtest/gtest.h>

#include <vector>

namespace steadfast {
namespace {

TEST(Admission, TheFirstInLineStartsIfItFits) {
  const std::vector<Waiting> line(3);
  EXPECT_EQ(next_to_start(line, [](int) { return true; }), 0);
  EXPECT_EQ(next_to_start(line, [](int i) { return i > 0; }), 1);
  EXPECT_EQ(next_to_start(line, [](int) { return false; }), -1);
  EXPECT_EQ(next_to_start(std::vector<Waiting>{}, [](int) { return true; }), -1);
}

TEST(Admission, NoneIsPassedMoreOftenThanTheLimit) {
  Waiting big;
  int passed = 0;
  while (next_to_start(std::vector<Waiting>{big, {}}, [](int i) { return i == 1; }) == 1) {
    ++big.passed;
    ASSERT_LE(++passed, kMostPassed);
  }
  EXPECT_EQ(passed, kMostPassed);
}

TEST(Admission, TheBackgroundStartsOnlyWhereNobodyElseWaits) {
  const std::vector<Waiting> line = {{}, {.background = true}};
  EXPECT_EQ(next_to_start(line, [](int i) { return i == 1; }), -1);
  EXPECT_EQ(next_to_start(std::vector<Waiting>{{.background = true}}, [](int) { return true; }), 0);
}

TEST(Admission, LooksOnlySoFar) {
  const std::vector<Waiting> line(kMostLooked + 5);
  int asked = 0;
  EXPECT_EQ(next_to_start(line, [&](int) { return ++asked, false; }), -1);
  EXPECT_EQ(asked, kMostLooked);
}

}  // namespace
}  // namespace steadfast
