// The short form, in every ./check.
#include "properties.h"

#include <gtest/gtest.h>

namespace steadfast::test {
namespace {

TEST(RandomRuns, KeepTheLawLeakNothingAndEnd) { check_random_runs(300, 30); }

}  // namespace
}  // namespace steadfast::test
