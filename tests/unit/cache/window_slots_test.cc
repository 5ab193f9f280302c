// Whole windows that outlive their streams: what is found again, where a stream goes on, and whose bits it finds there.
#include "cache/window_slots.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "backend/cpu/cpu_backend.h"

namespace steadfast {
namespace {

constexpr int kMost = 4096;

class WindowSlotsTest : public testing::TestWithParam<DType> {
 protected:
  WindowSlotsTest() : backend_(std::move(make_cpu_backend({1, Act::kF32, "scalar"})).value()) {
    dense_.layers = 2;
    dense_.kv_heads = 2;
    dense_.dim = 16;
    dense_.dtype = GetParam();
    hybrid_ = dense_;
    hybrid_.delta_layers = 1;
    hybrid_.delta = {1, 1, 16, 16, 4, false};
    hybrid_.delta_bytes = backend_->delta_state_bytes(hybrid_.delta);
  }

  using Tokens = std::vector<TokenId>;
  static Tokens counting(int first, int count) {
    Tokens tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
  }
  static Tokens joined(Tokens a, const Tokens& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  // Stores positions [first, last): each token's value at its position, everywhere.
  void compute(StreamState& state, const CacheShape& shape, const Tokens& tokens, int first, int last) {
    std::vector<float> row(static_cast<std::size_t>(shape.kv_heads * shape.dim));
    for (int layer = 0; layer < shape.layers; ++layer) {
      for (int p = first; p < last; ++p) {
        for (std::size_t i = 0; i < row.size(); ++i)
          row[i] = static_cast<float>(tokens[static_cast<std::size_t>(p)] * 8 + layer) + static_cast<float>(i) / 64;
        const Matrix rows(row.data(), 1, static_cast<int>(row.size()));
        backend_->store_kv(rows, rows, state.view(layer), p);
      }
    }
    if (shape.delta_layers > 0) *static_cast<float*>(state.state_data()) = static_cast<float>(last);
  }
  static float states_at(const StreamState& state) { return *static_cast<const float*>(state.state_data()); }

  // The bits that attention reads of positions [0, count).
  std::vector<float> read(const StreamState& state, const CacheShape& shape, int count) {
    std::vector<float> query(static_cast<std::size_t>(shape.kv_heads * shape.dim), 0.0f), out(query.size()), all;
    for (int layer = 0; layer < shape.layers; ++layer) {
      for (int p = 0; p < count; ++p) {  // a query of zeros: the mean of the values up to p
        const Piece piece{nullptr, 0, 1, p};
        const CacheView view = state.view(layer);
        const Matrix q(query.data(), 1, static_cast<int>(query.size())), o(out.data(), 1, q.width);
        backend_->attention(q, {shape.kv_heads, shape.kv_heads, shape.dim, 1.0f}, {&piece, 1}, {&view, 1}, o);
        all.insert(all.end(), out.begin(), out.end());
      }
    }
    return all;
  }

  // Runs a stream of these tokens in a slot and gives it back; how many positions it found computed.
  int run(WindowSlots& slots, const CacheShape& shape, const Tokens& tokens, int border = 0, int prompt = kAllPrompt) {
    auto lease = slots.take(tokens, static_cast<int>(tokens.size()) + 10, prompt);
    EXPECT_TRUE(lease) << lease.message();
    const int count = static_cast<int>(tokens.size());
    auto cold = std::move(StreamState::create(*backend_, shape, kMost)).value();
    compute(*cold, shape, tokens, 0, lease->resumed);
    EXPECT_EQ(read(*lease->state, shape, lease->resumed), read(*cold, shape, lease->resumed));
    if (shape.delta_layers > 0) {
      EXPECT_EQ(states_at(*lease->state), static_cast<float>(lease->resumed));
    }
    for (int p = lease->resumed; p < count; ++p) {
      compute(*lease->state, shape, tokens, p, p + 1);
      slots.progress(lease->slot, *lease->state, tokens, p + 1);
      if (border > 0 && (p + 1) % border == 0) slots.keep_states(lease->slot, *lease->state, p + 1);
    }
    slots.give_back(lease->slot, std::move(lease->state), true);
    return lease->resumed;
  }

  std::unique_ptr<Backend> backend_;
  CacheShape dense_, hybrid_;
};

INSTANTIATE_TEST_SUITE_P(Types, WindowSlotsTest, testing::Values(DType::kF32, DType::kBF16, DType::kF8E4M3),
                         [](const auto& entry) { return std::string(::steadfast::info(entry.param).name); });

TEST_P(WindowSlotsTest, AResendFindsAllButItsLastToken) {
  WindowSlots slots(*backend_, dense_, 2, kMost, 0);
  const Tokens tokens = counting(1, 40);
  EXPECT_EQ(run(slots, dense_, tokens), 0);
  EXPECT_EQ(run(slots, dense_, tokens), 39);
  EXPECT_EQ(run(slots, dense_, joined(tokens, {7, 8})), 40);
  EXPECT_EQ(run(slots, dense_, joined(counting(1, 20), {999, 5})), 20);
}

TEST_P(WindowSlotsTest, RowsOfTheOtherRoleEndThePrefix) {
  for (const CacheShape& shape : {dense_, hybrid_}) {
    WindowSlots slots(*backend_, shape, 1, kMost, shape.state_bytes() * 8);
    const bool hybrid = shape.delta_layers > 0;
    const Tokens tokens = counting(1, 50);
    EXPECT_EQ(run(slots, shape, tokens, 16, 40), 0);
    EXPECT_EQ(run(slots, shape, joined(tokens, {3}), 16, 40), 50) << "the stream itself, computed again";
    EXPECT_EQ(run(slots, shape, joined(tokens, {3, 4}), 16, 52), hybrid ? 32 : 40) << "its reply is a prompt now";
    EXPECT_EQ(run(slots, shape, joined(tokens, {3, 4}), 16, 33), hybrid ? 32 : 33) << "its prompt is a reply now";
  }
}

TEST_P(WindowSlotsTest, AnotherSlotsPrefixIsCopiedAlsoWhileItRuns) {
  WindowSlots slots(*backend_, dense_, 2, kMost, 0);
  const Tokens tokens = counting(1, 100);
  auto first = slots.take(tokens, 200);
  ASSERT_TRUE(first);
  compute(*first->state, dense_, tokens, 0, 70);
  slots.progress(first->slot, *first->state, tokens, 70);
  EXPECT_EQ(run(slots, dense_, joined(counting(1, 90), {5})), 70);
  EXPECT_EQ(slots.free_slots(), 1);
  slots.give_back(first->slot, std::move(first->state), true);
  EXPECT_EQ(slots.free_slots(), 2);
}

TEST_P(WindowSlotsTest, AShortCommonBeginningDoesNotCostALongPrefix) {
  WindowSlots slots(*backend_, dense_, 2, kMost, 0);
  EXPECT_EQ(run(slots, dense_, counting(1, 300)), 0);
  EXPECT_EQ(run(slots, dense_, joined({1, 2}, counting(1000, 50))), 2);
  EXPECT_EQ(run(slots, dense_, joined(counting(1, 300), {5})), 300);
}

TEST_P(WindowSlotsTest, ALongerStreamTakesItsPrefixIntoALongerWindow) {
  WindowSlots slots(*backend_, dense_, 1, kMost, 0);
  EXPECT_EQ(run(slots, dense_, counting(1, 50)), 0);
  const std::size_t before = slots.window_bytes();
  EXPECT_EQ(run(slots, dense_, counting(1, 1500)), 50);
  EXPECT_GT(slots.window_bytes(), before);
  EXPECT_EQ(run(slots, dense_, counting(1, 1501)), 1500);
}

TEST_P(WindowSlotsTest, AFailedStreamLeavesNothing) {
  WindowSlots slots(*backend_, dense_, 1, kMost, 0);
  const Tokens tokens = counting(1, 30);
  auto lease = slots.take(tokens, 40);
  ASSERT_TRUE(lease);
  slots.progress(lease->slot, *lease->state, tokens, 20);
  slots.give_back(lease->slot, std::move(lease->state), false);
  EXPECT_EQ(run(slots, dense_, tokens), 0);
}

TEST_P(WindowSlotsTest, AHybridGoesOnWhereItsStatesAreKnown) {
  WindowSlots slots(*backend_, hybrid_, 2, kMost, hybrid_.state_bytes() * 8);
  const Tokens tokens = counting(1, 50);
  EXPECT_EQ(run(slots, hybrid_, tokens, 16), 0);
  EXPECT_EQ(run(slots, hybrid_, joined(tokens, {3}), 16), 50) << "at the ended stream's last state";
  EXPECT_EQ(run(slots, hybrid_, joined(counting(1, 40), {999}), 16), 32) << "at a border";
  EXPECT_EQ(run(slots, hybrid_, counting(1, 15), 16), 0) << "before the first border";
}

TEST_P(WindowSlotsTest, StatesStayUnderTheirBudget) {
  const std::size_t one = hybrid_.state_bytes();
  WindowSlots slots(*backend_, hybrid_, 1, kMost, 2 * one);
  EXPECT_EQ(run(slots, hybrid_, counting(1, 80), 16), 0);
  EXPECT_EQ(slots.state_bytes(), 2 * one);
  EXPECT_EQ(run(slots, hybrid_, joined(counting(1, 79), {999}), 0), 64) << "the newest borders are kept";
  WindowSlots none(*backend_, hybrid_, 1, kMost, one - 1);
  EXPECT_EQ(run(none, hybrid_, counting(1, 80), 16), 0);
  EXPECT_EQ(none.state_bytes(), 0u);
}

}  // namespace
}  // namespace steadfast
