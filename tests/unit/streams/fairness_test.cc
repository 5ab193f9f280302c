// Who goes first: short prompts beside long ones, big streams behind small ones, replies beside prompts, the background
// behind all; what a cancelled stream held serves the next round.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario.h"
#include "schedule/admission.h"

namespace steadfast::test {
namespace {

using ::testing::IsEmpty;

Arrival arrival(int prompt, int tokens, int salt, int at = 0, bool background = false) {
  std::vector<TokenId> ids;
  for (int i = 0; i < prompt; ++i) ids.push_back((13 * i + 7 * salt + i * i * salt) % kFakeVocab);
  Arrival made;
  made.request = request_of(std::move(ids), tokens, static_cast<std::uint64_t>(salt), background);
  made.at = at;
  return made;
}

TEST(Fairness, ShortPromptsStartSoonBesideALongOne) {
  Scenario scenario;
  scenario.options = {.streams = 4, .paged = true, .page = 16, .pool_pages = 256, .row_budget = 64};
  scenario.arrivals = {arrival(1, 300, 1), arrival(3000, 4, 2, 1), arrival(20, 4, 3, 20)};
  Play play(scenario);
  play.run();
  EXPECT_THAT(play.complaints(), IsEmpty());
  const Outcome &long_one = play.outcomes()[1], &short_one = play.outcomes()[2];
  EXPECT_LE(short_one.first_token - short_one.submitted, 7u) << "20 rows, at 3 or 4 of the 7 that a round's share has";
  EXPECT_GT(long_one.first_token, short_one.ended);
}

TEST(Fairness, ABigStreamIsNotPassedForEver) {
  Scenario scenario;
  scenario.options = {.streams = 4, .paged = true, .page = 16, .pool_pages = 24};
  for (int i = 0; i < 60; ++i) scenario.arrivals.push_back(arrival(60, 40, i, std::max(0, i - 4) * 10));
  constexpr std::size_t kBig = 3;
  scenario.arrivals[kBig] = arrival(330, 20, 99, 0);
  Play play(scenario);
  play.run();
  EXPECT_THAT(play.complaints(), IsEmpty());
  int passed = 0;
  for (std::size_t i = kBig + 1; i < scenario.arrivals.size(); ++i)
    passed += play.outcomes()[i].first_token < play.outcomes()[kBig].first_token ? 1 : 0;
  EXPECT_GT(passed, 0) << "small ones may pass while there is room for them";
  EXPECT_LE(passed, kMostPassed);
}

TEST(Fairness, RepliesKeepTheirShareBesidePrompts) {
  for (const double share : {0.1, 0.5, 0.8}) {
    Scenario scenario;
    scenario.options = {.streams = 3, .paged = true, .page = 16, .pool_pages = 256, .prompt_share = share};
    scenario.arrivals = {arrival(1, 400, 1), arrival(2500, 1, 2, 5), arrival(40, 1, 3, 20)};
    Play play(scenario);
    double others = 0, own = 0, worst = 0;
    play.backend().on_round([&](std::span<const Piece> pieces) {
      if (pieces[0].rows != 1 || pieces[0].first_position == 0 || pieces[0].first_position > 400) return;
      int rows = 0;
      for (const Piece& piece : pieces.subspan(1)) rows += piece.rows;
      others += rows;
      own += play.backend().round_cost() + 1;
      worst = std::max(worst, others - share / (1 - share) * own);
    });
    play.run();
    EXPECT_THAT(play.complaints(), IsEmpty());
    EXPECT_GT(others, 100) << share;
    EXPECT_LE(worst, 1) << share << ": prompts took more than their share of the time";
  }
}

TEST(Fairness, TheBackgroundGivesWay) {
  for (const FakeKind kind : {FakeKind::kDense, FakeKind::kHybrid}) {
    Scenario scenario;
    scenario.kind = kind;
    scenario.options = {.streams = 2, .paged = true, .page = 16, .pool_pages = 40};
    scenario.arrivals = {arrival(50, 200, 1, 0, true), arrival(50, 200, 2, 0, true), arrival(50, 20, 3, 30),
                         arrival(50, 20, 4, 30), arrival(50, 20, 5, 30)};
    Play play(scenario);
    play.run();
    EXPECT_THAT(play.complaints(), IsEmpty());
    EXPECT_GE(play.engine().counters().streams_set_aside, 2u);
    const auto& outcomes = play.outcomes();
    EXPECT_LE(outcomes[2].first_token - outcomes[2].submitted, 5u) << "50 rows, a hybrid's in 4 pieces";
    EXPECT_LE(outcomes[3].first_token - outcomes[3].submitted, 20u) << "its prompt is paid for from the share";
    for (const std::size_t background : {0u, 1u})
      for (const std::size_t other : {2u, 3u, 4u}) EXPECT_GT(outcomes[background].ended, outcomes[other].ended);
  }
}

TEST(Fairness, WhatACancelledStreamHeldServesTheNextRound) {
  for (const bool paged : {false, true}) {
    Scenario scenario;
    scenario.options = {.streams = paged ? 4 : 1, .paged = paged, .page = 16, .pool_pages = paged ? 10 : 0};
    scenario.arrivals = {arrival(100, 50, 1), arrival(100, 5, 2)};
    scenario.arrivals[0].cancel = 10;
    Play play(scenario);
    play.run();
    EXPECT_THAT(play.complaints(), IsEmpty());
    EXPECT_EQ(play.outcomes()[0].end->reason, FinishReason::kCancelled);
    EXPECT_EQ(play.outcomes()[0].ids.size(), 10u);
    EXPECT_EQ(play.outcomes()[1].first_token, play.outcomes()[0].first_token + 10);
  }
}

TEST(Fairness, KeptPrefixesGoBeforeStreamsAreSetAside) {
  Scenario scenario;
  scenario.options = {.streams = 2, .paged = true, .page = 16, .pool_pages = 16};
  for (int i = 0; i < 12; ++i) scenario.arrivals.push_back(arrival(90, 8, i));
  Play play(scenario);
  play.run();
  EXPECT_THAT(play.complaints(), IsEmpty());
  EXPECT_EQ(play.engine().counters().streams_set_aside, 0u) << "7 pages each: two fit, once the kept ones are given up";
}

// Three streams grow until the pool is short: the background's goes first, then the newest, and the oldest ends first.
TEST(Fairness, TheOldestIsNeverSetAside) {
  Scenario scenario;
  scenario.options = {.streams = 3, .paged = true, .page = 16, .pool_pages = 14};
  scenario.arrivals = {arrival(20, 180, 1, 0, true), arrival(20, 180, 2), arrival(20, 180, 3)};
  Play play(scenario);
  play.run();
  EXPECT_THAT(play.complaints(), IsEmpty());
  EXPECT_GE(play.engine().counters().streams_set_aside, 2u);
  EXPECT_LT(play.outcomes()[1].ended, play.outcomes()[2].ended);
  EXPECT_LT(play.outcomes()[2].ended, play.outcomes()[0].ended);
}

TEST(Fairness, WhatCanNeverFitIsRefusedWithWhatWould) {
  Scenario scenario;
  scenario.options = {.streams = 2, .paged = true, .page = 16, .pool_pages = 4};
  scenario.arrivals = {arrival(64, 5, 1), arrival(63, 5, 2)};
  Play play(scenario);
  play.run();
  EXPECT_THAT(play.complaints(), IsEmpty());
  EXPECT_THAT(play.outcomes()[0].refusal, ::testing::HasSubstr("a prompt of 63 and a reply of one token would fit"));
}

}  // namespace
}  // namespace steadfast::test
