// 10,000 streams through the fake backend and 500 short ones of a real model, with random cancellation.
#include <gtest/gtest.h>

#include "crowd_runs.h"

namespace steadfast::test {
namespace {

TEST(ManyStreams, DenseOnPages) { expect_crowd_on_fake(FakeKind::kDense, true, 1250, 3); }
TEST(ManyStreams, HybridOnPages) { expect_crowd_on_fake(FakeKind::kHybrid, true, 1250, 3); }
TEST(ManyStreams, DenseInWindows) { expect_crowd_on_fake(FakeKind::kDense, false, 1250, 1); }
TEST(ManyStreams, HybridInWindows) { expect_crowd_on_fake(FakeKind::kHybrid, false, 1250, 1); }
TEST(ManyStreams, RealOnPages) { expect_crowd_on_real(true, 250, 1); }
TEST(ManyStreams, RealInWindows) { expect_crowd_on_real(false, 250, 1); }

}  // namespace
}  // namespace steadfast::test
