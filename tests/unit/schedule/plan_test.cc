// Plans of rounds: single rows first, then prompts in order of age, within the budget; nobody waits for ever.
#include "schedule/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace steadfast {
namespace {

std::vector<std::pair<int, int>> plan_of(const std::vector<int>& pending, int budget, int piece = 0) {
  std::vector<PlanInput> inputs;
  for (const int rows : pending) inputs.push_back({rows});
  std::vector<std::pair<int, int>> entries;
  for (const PlanEntry& entry : plan_round(inputs, budget, piece)) entries.emplace_back(entry.stream, entry.rows);
  return entries;
}

using Entries = std::vector<std::pair<int, int>>;

TEST(PlanRound, GivesEveryoneWhatFits) {
  EXPECT_EQ(plan_of({3, 1, 5}, 100), (Entries{{0, 3}, {1, 1}, {2, 5}}));
  EXPECT_EQ(plan_of({}, 100), Entries{});
}

TEST(PlanRound, TakesSingleRowsBeforePrompts) {
  EXPECT_EQ(plan_of({50, 1, 60, 1}, 10), (Entries{{0, 8}, {1, 1}, {3, 1}}));
  EXPECT_EQ(plan_of({50, 1, 1, 1}, 3), (Entries{{1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(plan_of({1, 1, 1, 1}, 3), (Entries{{0, 1}, {1, 1}, {2, 1}}));
}

TEST(PlanRound, ServesPromptsInOrderOfAge) {
  EXPECT_EQ(plan_of({30, 30, 30}, 64), (Entries{{0, 30}, {1, 30}, {2, 4}}));
}

TEST(PlanRound, CutsPromptsIntoPieces) {
  EXPECT_EQ(plan_of({30, 1, 30, 30}, 20, 7), (Entries{{0, 7}, {1, 1}, {2, 7}, {3, 5}}));
  EXPECT_EQ(plan_of({7, 8}, 100, 7), (Entries{{0, 7}, {1, 7}}));
}

TEST(PlanRound, KeepsItsRulesOnRandomInputs) {
  std::mt19937 dice(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<int> pending(dice() % 12);
    for (int& rows : pending) rows = dice() % 2 == 0 ? 1 : 1 + static_cast<int>(dice() % 200);
    const int budget = 1 + static_cast<int>(dice() % 64), piece = static_cast<int>(dice() % 20);
    int used = 0, last = -1;
    for (const auto& [stream, rows] : plan_of(pending, budget, piece)) {
      EXPECT_GT(stream, last);  // in order, each at most once
      last = stream;
      EXPECT_GE(rows, 1);
      EXPECT_LE(rows, pending[static_cast<std::size_t>(stream)]);
      if (piece > 0 && rows > 1) {
        EXPECT_LE(rows, piece);
      }
      used += rows;
    }
    EXPECT_LE(used, budget);
    const int wanted = std::accumulate(pending.begin(), pending.end(), 0);
    if (piece == 0) {
      EXPECT_EQ(used, std::min(budget, wanted));
    }  // no row of the budget is left idle
  }
}

// As the engine calls it: the budget is at least the number of streams, replies go on for ever, prompts must end.
TEST(PlanRound, EveryPromptIsComputedInTheEnd) {
  for (const int streams : {1, 2, 5, 8}) {
    for (const int piece : {0, 1, 3}) {
      std::vector<int> left(static_cast<std::size_t>(streams), 20);
      left[0] = 1;
      int rounds = 0;
      for (; *std::max_element(left.begin(), left.end()) > 1; ++rounds) {
        ASSERT_LT(rounds, 20 * streams) << "a prompt waits for ever";
        for (const auto& [stream, rows] : plan_of(left, streams, piece))
          left[static_cast<std::size_t>(stream)] = std::max(1, left[static_cast<std::size_t>(stream)] - rows);
      }
    }
  }
}

}  // namespace
}  // namespace steadfast
