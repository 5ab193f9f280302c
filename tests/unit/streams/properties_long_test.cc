// The long form: more and larger runs.
#include "properties.h"

#include <gtest/gtest.h>

namespace steadfast::test {
namespace {

TEST(RandomRunsLong, KeepTheLawLeakNothingAndEnd) { check_random_runs(10000, 60); }

}  // namespace
}  // namespace steadfast::test
