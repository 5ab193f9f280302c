// The long form: 100,000 streams through the fake backend, 5,000 of a real model.
#include <gtest/gtest.h>

#include "crowd_runs.h"

namespace steadfast::test {
namespace {

TEST(ManyStreamsLong, DenseOnPages) { expect_crowd_on_fake(FakeKind::kDense, true, 10000, 5); }
TEST(ManyStreamsLong, HybridOnPages) { expect_crowd_on_fake(FakeKind::kHybrid, true, 10000, 5); }
TEST(ManyStreamsLong, RealOnPages) { expect_crowd_on_real(true, 500, 5); }
TEST(ManyStreamsLong, RealInWindows) { expect_crowd_on_real(false, 500, 5); }

}  // namespace
}  // namespace steadfast::test
