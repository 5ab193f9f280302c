// The memory plan: it is what the engine takes, it is refused before anything is allocated, with what would fit.
#include "engine/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "support/fake_model.h"

namespace steadfast::test {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMiB = 1 << 20;

Result<MemoryPlan> plan_of(FakeKind kind, const EngineOptions& options) {
  const FakeModel model = fake_model(kind, 65536);
  return plan_memory(*model.loaded->model, model.loaded->kv_dtype, options);
}

// Each test of layouts asks the fake backend what was allocated.
TEST(MemoryPlan, IsWhatTheEngineAllocates) {
  for (const FakeKind kind : {FakeKind::kDense, FakeKind::kHybrid}) {
    FakeModel model = fake_model(kind);
    const auto ledger = model.ledger;
    const std::int64_t weights = ledger->live_bytes();
    auto engine = Engine::create(std::move(model.loaded), {.streams = 2, .paged = true, .page = 16, .pool_pages = 40});
    ASSERT_TRUE(engine) << engine.message();
    const MemoryPlan& plan = (*engine)->memory();
    EXPECT_EQ(static_cast<std::size_t>(ledger->live_bytes() - weights), plan.pool + plan.workspace);
    EXPECT_EQ(plan.pages, 40);
    EXPECT_EQ(plan.context, 640);
    EXPECT_EQ((*engine)->card().window, 640) << "no stream is longer than the pool";
    EXPECT_EQ(plan.states > 0, kind == FakeKind::kHybrid);
    EXPECT_EQ(plan.kept_states > 0, kind == FakeKind::kHybrid);
  }
}

TEST(MemoryPlan, StreamsOnPagesReserveNoWholeWindows) {
  EngineOptions options{.streams = 8, .context = 65536, .memory = 256 * kMiB};
  const auto whole = plan_of(FakeKind::kDense, options);  // 8 times 65,536 positions of 512 bytes: 256 MiB
  ASSERT_FALSE(whole);
  EXPECT_THAT(whole.message(), HasSubstr("8 streams of 65536 positions need"));
  EXPECT_THAT(whole.message(), HasSubstr("or --parallel 7"));
  EXPECT_THAT(whole.message(), HasSubstr("--kv paged"));
  options.paged = true;
  const auto paged = plan_of(FakeKind::kDense, options);
  ASSERT_TRUE(paged) << paged.message();
  EXPECT_EQ(paged->context, 65536);
  EXPECT_LT(paged->total(), options.memory);
  EXPECT_GE(paged->pages * paged->page, 65536);
}

TEST(MemoryPlan, WhatItSaysWouldFitFits) {
  for (const FakeKind kind : {FakeKind::kDense, FakeKind::kHybrid}) {
    for (const bool paged : {false, true}) {
      EngineOptions options{.streams = 3, .paged = paged, .context = 65536, .memory = 6 * kMiB};
      const auto refused = plan_of(kind, options);
      ASSERT_FALSE(refused);
      const std::string message = refused.message();
      const auto at = message.find("--context ");
      ASSERT_NE(at, std::string::npos) << message;
      options.context = std::stoi(message.substr(at + 10));
      EXPECT_TRUE(plan_of(kind, options)) << message;
      options.context += 16;
      EXPECT_FALSE(plan_of(kind, options)) << message;
    }
  }
}

TEST(MemoryPlan, WithoutAContextStreamsGetWhatFits) {
  const auto plan = plan_of(FakeKind::kDense, {.streams = 3, .memory = 6 * kMiB});
  ASSERT_TRUE(plan) << plan.message();
  EXPECT_LT(plan->context, 65536);
  EXPECT_GT(plan->context, 1000);
  EXPECT_LE(plan->total(), 6 * kMiB);
  EXPECT_THAT(plan->sentence(), HasSubstr(fmt::format("3 streams of up to {} positions", plan->context)));
  const auto all = plan_of(FakeKind::kDense, {.streams = 3, .memory = 600 * kMiB});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->context, 65536);
}

TEST(MemoryPlan, RefusesWhatNothingCanMend) {
  const auto none = plan_of(FakeKind::kDense, {.memory = 1000});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.message(), HasSubstr("a machine with more memory"));
  const auto pool = plan_of(FakeKind::kDense, {.paged = true, .pool_pages = 1 << 20, .memory = 64 * kMiB});
  ASSERT_FALSE(pool);
  EXPECT_THAT(pool.message(), HasSubstr("a pool of 1048576 pages is too large"));
  for (const double share : {0.0, -1.0, 1.5}) {
    const auto refused = plan_of(FakeKind::kDense, {.prompt_share = share});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.message(), HasSubstr("--prompt-share"));
  }
}

}  // namespace
}  // namespace steadfast::test
