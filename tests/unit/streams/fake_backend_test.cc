// The fake backend sees what it is for: each kind of fault, planted by hand, is told; without one nothing is.
#include "backend/fake/fake_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "support/fake_model.h"

namespace steadfast::test {
namespace {

using ::testing::HasSubstr;

constexpr int kPage = 16;

// One stream fed by hand.
class Hand : public ::testing::TestWithParam<FakeKind> {
 protected:
  Hand() : model_(fake_model(GetParam())) {
    auto workspace = Workspace::create(*model_.backend, model_.loaded->model->config(), 512);
    CHECK(workspace.is_ok(), "{}", workspace.message());
    workspace_ = std::move(*workspace);
    auto pool = PagePool::create(*model_.backend, shape(), kPage, 32);
    CHECK(pool.is_ok(), "{}", pool.message());
    pool_ = std::move(*pool);
    model_.backend->watch(pool_.get());
  }
  CacheShape shape() const { return model_.loaded->model->cache_shape(model_.loaded->kv_dtype); }
  std::unique_ptr<StreamState> paged() {
    auto state = StreamState::create_paged(*model_.backend, *pool_, 256);
    CHECK(state.is_ok(), "{}", state.message());
    return std::move(*state);
  }
  std::unique_ptr<StreamState> whole() {
    auto state = StreamState::create(*model_.backend, shape(), 256);
    CHECK(state.is_ok(), "{}", state.message());
    return std::move(*state);
  }
  void feed(StreamState& state, int first, const std::vector<TokenId>& ids) {
    ASSERT_TRUE(state.reserve(first + static_cast<int>(ids.size())));
    Round round;
    round.add(state, first, ids.data(), static_cast<int>(ids.size()));
    const auto status = model_.loaded->model->forward(round, *workspace_);
    ASSERT_TRUE(status) << status.message();
  }
  static std::vector<TokenId> ids(int count, int salt = 0) {
    std::vector<TokenId> all;
    for (int i = 0; i < count; ++i) all.push_back((7 * i + salt) % kFakeVocab);
    return all;
  }
  std::string told() const {
    std::string all;
    for (const std::string& sentence : model_.ledger->sentences()) all += sentence + "\n";
    return all;
  }

  FakeModel model_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<PagePool> pool_;
};

TEST_P(Hand, RightUseIsQuiet) {
  for (const bool on_pages : {false, true}) {
    const auto state = on_pages ? paged() : whole();
    feed(*state, 0, ids(40));
    feed(*state, 40, ids(1));
    feed(*state, 41, ids(30, 3));
  }
  EXPECT_EQ(told(), "");
}

TEST_P(Hand, SkippedAndRepeatedPositions) {
  const auto state = paged();
  feed(*state, 0, ids(20));
  feed(*state, 21, ids(1));
  EXPECT_THAT(told(), HasSubstr("stood at position 20 was fed position 21"));
  EXPECT_THAT(told(), HasSubstr("the cache holds position 0"));
  const auto other = paged();
  feed(*other, 0, ids(20));
  feed(*other, 19, ids(1));
  EXPECT_THAT(told(), HasSubstr("stood at position 20 was fed position 19"));
}

TEST_P(Hand, SwappedPages) {
  const auto state = paged(), donor = paged();
  feed(*donor, 0, ids(40, 5));
  feed(*state, 0, ids(40));
  ASSERT_EQ(told(), "");
  state->exchange(1, donor->pages()[1]);
  feed(*state, 40, ids(1));
  EXPECT_THAT(told(), HasSubstr("position 16 of a stream that stands at 40"));
  EXPECT_THAT(told(), HasSubstr("another history"));
}

TEST_P(Hand, AWrittenSharedPage) {
  const auto state = paged();
  feed(*state, 0, ids(20));
  pool_->share(state->pages()[1]);
  feed(*state, 20, ids(1));
  EXPECT_THAT(told(), HasSubstr("was written while 2 hold it"));
  pool_->drop(state->pages()[1]);
}

TEST_P(Hand, AnOverwrittenPosition) {
  const auto state = whole();
  feed(*state, 0, ids(20));
  const CacheView view = state->view(0);
  static_cast<std::uint16_t*>(view.values)[view.head_offset(1) + 3 * view.dim + 5] ^= 1;  // position 3, second head
  feed(*state, 20, ids(1));
  EXPECT_THAT(told(), HasSubstr("a value unlike its key"));
}

TEST_P(Hand, StaleRecurrentStates) {
  if (GetParam() == FakeKind::kDense) return;
  const auto state = paged();
  feed(*state, 0, ids(20));
  std::vector<std::byte> old(shape().state_bytes());
  std::memcpy(old.data(), state->state_data(), old.size());
  feed(*state, 20, ids(4));
  ASSERT_EQ(told(), "");
  std::memcpy(state->state_data(), old.data(), old.size());
  feed(*state, 24, ids(1));
  EXPECT_THAT(told(), HasSubstr("has seen 20 positions and is fed position 24"));
}

// As many positions, another history: only the comparison with the cache can tell.
TEST_P(Hand, AnotherStreamsRecurrentStates) {
  if (GetParam() == FakeKind::kDense) return;
  const auto state = paged(), other = paged();
  feed(*state, 0, ids(20));
  feed(*other, 0, ids(20, 9));
  std::memcpy(state->state_data(), other->state_data(), shape().state_bytes());
  feed(*state, 20, ids(1));
  EXPECT_THAT(told(), HasSubstr("the recurrent states are of another history"));
}

TEST_P(Hand, RollingBackIsQuiet) {
  const auto state = paged();
  feed(*state, 0, ids(20));
  ASSERT_TRUE(state->record(*model_.backend, 8));
  feed(*state, 20, ids(6));
  ASSERT_TRUE(model_.loaded->model->roll_back(*state, 2, *workspace_));
  feed(*state, 22, ids(6, 4));
  EXPECT_EQ(told(), "");
}

TEST_P(Hand, IsFast) {
  const auto state = whole();
  const auto began = std::chrono::steady_clock::now();
  int rows = 0;
  for (int position = 0; position + 8 <= 240; position += 8, rows += 8) feed(*state, position, ids(8));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  RecordProperty("rows_per_second", static_cast<int>(rows / seconds));
  EXPECT_LT(seconds, 1.0) << rows << " rows";
}

INSTANTIATE_TEST_SUITE_P(Fake, Hand, ::testing::Values(FakeKind::kDense, FakeKind::kHybrid),
                         [](const auto& kind) { return kind.param == FakeKind::kDense ? "dense" : "hybrid"; });

}  // namespace
}  // namespace steadfast::test
