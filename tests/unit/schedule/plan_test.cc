// Plans of rounds: replies first, prompts within their share of the time, half to the oldest and the rest to the
// shortest, the background in what is left; nobody waits for ever.
#include "schedule/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace steadfast {
namespace {

using Entries = std::vector<std::pair<int, int>>;

PlanInput prompt(int pending) { return {.pending = pending}; }
PlanInput reply() { return {.pending = 1, .replying = true}; }
PlanInput background(PlanInput input) {
  input.background = true;
  return input;
}

Entries plan_of(RoundPlanner& planner, const std::vector<PlanInput>& inputs) {
  Entries entries;
  for (const PlanEntry& entry : planner.plan(inputs)) entries.emplace_back(entry.stream, entry.rows);
  return entries;
}

Entries plan_of(const std::vector<PlanInput>& inputs, int budget, int piece = 0, double share = 1) {
  RoundPlanner planner({.budget = budget, .piece = piece, .prompt_share = share});
  return plan_of(planner, inputs);
}

TEST(PlanRound, GivesEveryoneWhatFits) {
  EXPECT_EQ(plan_of({prompt(3), reply(), prompt(5)}, 100), (Entries{{0, 3}, {1, 1}, {2, 5}}));
  EXPECT_EQ(plan_of(std::vector<PlanInput>{}, 100), Entries{});
}

TEST(PlanRound, TakesRepliesBeforePrompts) {
  EXPECT_EQ(plan_of({prompt(50), reply(), prompt(60), reply()}, 10), (Entries{{0, 8}, {1, 1}, {3, 1}}));
  EXPECT_EQ(plan_of({prompt(50), reply(), reply(), reply()}, 3), (Entries{{1, 1}, {2, 1}, {3, 1}}));
}

TEST(PlanRound, GivesHalfToTheOldestPromptAndTheRestToTheShortest) {
  EXPECT_EQ(plan_of({prompt(300), prompt(200), prompt(20)}, 64), (Entries{{0, 32}, {1, 12}, {2, 20}}));
  EXPECT_EQ(plan_of({prompt(10), prompt(200), prompt(200)}, 64), (Entries{{0, 10}, {1, 54}}));
  EXPECT_EQ(plan_of({prompt(300), prompt(200)}, 64), (Entries{{0, 32}, {1, 32}}));
}

TEST(PlanRound, TheOddRowTakesTurns) {
  RoundPlanner planner({.budget = 1, .prompt_share = 1});
  int oldest = 0;
  for (int round = 0; round < 10; ++round)
    oldest += plan_of(planner, {prompt(300), prompt(20)}) == Entries{{0, 1}} ? 1 : 0;
  EXPECT_EQ(oldest, 5);
}

TEST(PlanRound, CutsPromptsIntoPieces) {
  EXPECT_EQ(plan_of({prompt(30), reply(), prompt(30), prompt(30)}, 20, 7), (Entries{{0, 7}, {1, 1}, {2, 7}, {3, 5}}));
  const PlanInput to_border{.pending = 30, .most = 4};
  EXPECT_EQ(plan_of({to_border, prompt(8)}, 100, 7), (Entries{{0, 4}, {1, 7}}));
}

TEST(PlanRound, TheBackgroundGetsWhatIsLeft) {
  EXPECT_EQ(plan_of({prompt(50), background(reply()), background(prompt(60))}, 64),
            (Entries{{0, 50}, {1, 1}, {2, 13}}));
  EXPECT_EQ(plan_of({prompt(80), background(reply()), background(prompt(60))}, 64), (Entries{{0, 64}}));
  // Alone it is served as others would be.
  EXPECT_EQ(plan_of({background(reply()), background(prompt(60))}, 64, 0, 0.5), (Entries{{0, 1}, {1, 9}}));
}

TEST(PlanRound, TheBackgroundsRowsArePaidForFromThePromptsShare) {
  RoundPlanner planner({.budget = 64, .prompt_share = 0.5, .round_cost = 3});
  const std::vector<PlanInput> streams = {reply(), background(reply()), background(reply()), background(prompt(60))};
  EXPECT_EQ(plan_of(planner, streams), (Entries{{0, 1}, {1, 1}, {2, 1}, {3, 2}}));  // 3 + 1 rows of others
}

// While replies run, other rows' part of a time of round_cost + rows is at most the share, over any stretch of rounds,
// but for a single row that was saved up; and it is all used where prompts wait.
TEST(PlanRound, KeepsThePromptShare) {
  for (const double share : {0.01, 0.1, 0.5, 0.9, 0.99}) {
    for (const int replies : {1, 5, 40}) {
      RoundPlanner planner({.budget = 1 << 16, .prompt_share = share, .round_cost = 6});
      std::vector<PlanInput> streams(static_cast<std::size_t>(replies), reply());
      streams.push_back(prompt(1 << 30));
      double others = 0, own = 0;
      for (int round = 0; round < 400; ++round) {
        for (const auto& [stream, rows] : plan_of(planner, streams))
          if (stream == replies) others += rows;
        own += 6 + replies;
        ASSERT_LE(others, share / (1 - share) * own + 1) << share;
      }
      EXPECT_GE(others, share / (1 - share) * own - 1) << share;
    }
  }
}

TEST(PlanRound, TheShareIsNotSavedUp) {
  RoundPlanner planner({.budget = 512, .prompt_share = 0.5, .round_cost = 8});
  for (int round = 0; round < 100; ++round) plan_of(planner, {reply()});
  EXPECT_EQ(plan_of(planner, {reply(), prompt(500)}), (Entries{{0, 1}, {1, 9}}));
  EXPECT_EQ(plan_of(planner, {prompt(5000)}), (Entries{{0, 512}})) << "nobody is kept waiting";
  EXPECT_EQ(plan_of(planner, {reply(), prompt(500)}), (Entries{{0, 1}, {1, 9}}));
}

TEST(PlanRound, KeepsItsRulesOnRandomInputs) {
  std::mt19937 dice(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<PlanInput> inputs(dice() % 12);
    int wanted = 0;
    for (PlanInput& input : inputs) {
      input = dice() % 2 == 0 ? reply() : prompt(1 + static_cast<int>(dice() % 200));
      wanted += input.pending;
    }
    const int budget = 12 + static_cast<int>(dice() % 64), piece = static_cast<int>(dice() % 20);
    int used = 0, last = -1;
    for (const auto& [stream, rows] : plan_of(inputs, budget, piece)) {
      EXPECT_GT(stream, last);  // in order, each at most once
      last = stream;
      EXPECT_GE(rows, 1);
      EXPECT_LE(rows, inputs[static_cast<std::size_t>(stream)].pending);
      EXPECT_LE(rows, piece > 0 ? piece : rows);
      used += rows;
    }
    EXPECT_LE(used, budget);
    EXPECT_EQ(used, piece == 0 ? std::min(budget, wanted) : used) << "rows are left idle";
  }
}

// However the others are, the oldest prompt gets half of what all prompts get: it ends, then the next is the oldest.
TEST(PlanRound, EveryPromptIsComputedInTheEnd) {
  for (const double share : {0.01, 0.3, 1.0}) {
    for (const int piece : {0, 1, 3}) {
      RoundPlanner planner({.budget = 8, .piece = piece, .prompt_share = share, .round_cost = 6});
      int oldest = 40, rounds = 0;
      for (; oldest > 0; ++rounds) {
        ASSERT_LT(rounds, 40 * 40) << "a prompt waits for ever";
        // Short prompts come in without end, and two replies run.
        for (const auto& [stream, rows] : plan_of(planner, {prompt(oldest), reply(), reply(), prompt(1), prompt(2)}))
          if (stream == 0) oldest -= rows;
      }
    }
  }
}

// A short prompt beside a long one needs no more rounds than twice its rows over the budget, and one.
TEST(PlanRound, ShortPromptsStartSoonBesideALongOne) {
  RoundPlanner planner({.budget = 64, .prompt_share = 1});
  int left = 200, rounds = 0;
  for (; left > 0; ++rounds)
    for (const auto& [stream, rows] : plan_of(planner, {prompt(100000), prompt(left)}))
      if (stream == 1) left -= rows;
  EXPECT_LE(rounds, 2 * 200 / 64 + 1);
}

}  // namespace
}  // namespace steadfast
