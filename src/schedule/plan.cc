// One pass for replies, one for prompts, one for the background; then the share's account is settled.
#include "schedule/plan.h"

#include <algorithm>

#include "base/check.h"

namespace steadfast {

// Rows of each stream so far, and how many more it may give.
struct RoundPlanner::Draft {
  std::span<const PlanInput> streams;
  int piece;
  std::vector<int> rows;

  int open(int stream) const {
    const PlanInput& input = streams[static_cast<std::size_t>(stream)];
    int limit = input.pending;
    if (input.most > 0) limit = std::min(limit, input.most);
    if (piece > 0 && !input.replying) limit = std::min(limit, piece);
    return limit - rows[static_cast<std::size_t>(stream)];
  }
  void give(int stream, int wanted, int& left) {
    const int given = std::min({wanted, left, open(stream)});
    rows[static_cast<std::size_t>(stream)] += given;
    left -= given;
  }
};

// Rows that are not replies' and may be computed beside `replies` of them.
int RoundPlanner::allowance(int replies, int left) {
  if (replies == 0 || rules_.prompt_share >= 1) {
    credit_ = 0;
    return left;
  }
  credit_ += (rules_.round_cost + replies) * rules_.prompt_share / (1 - rules_.prompt_share);
  return std::min(left, static_cast<int>(std::min(credit_, 1e9)));
}

// What the share allowed and nobody wanted, or the budget could not hold, is not saved up: credit stays below one row.
void RoundPlanner::settle(int used, bool limited) { credit_ = limited ? std::clamp(credit_ - used, 0.0, 1.0) : 0; }

// Half to the oldest prompt, so that none waits for ever; the rest to the shortest, then the next one.
void RoundPlanner::share_out(std::span<const int> prompts, int& rows, Draft& draft) {
  if (prompts.empty() || rows <= 0) return;
  int half = rows / 2;
  if (rows % 2 == 1) {
    half += turn_ ? 0 : 1;
    turn_ = !turn_;
  }
  draft.give(prompts.front(), half, rows);
  std::vector<int> by_length(prompts.begin(), prompts.end());
  std::stable_sort(by_length.begin(), by_length.end(), [&](int a, int b) {
    return draft.streams[static_cast<std::size_t>(a)].pending < draft.streams[static_cast<std::size_t>(b)].pending;
  });
  for (const int stream : by_length) draft.give(stream, rows, rows);
}

std::vector<PlanEntry> RoundPlanner::plan(std::span<const PlanInput> streams) {
  Draft draft{streams, rules_.piece, std::vector<int>(streams.size(), 0)};
  const auto count = static_cast<int>(streams.size());
  const auto input = [&](int stream) -> const PlanInput& { return streams[static_cast<std::size_t>(stream)]; };
  // Without others the background is served as they would be.
  const bool alone = std::all_of(streams.begin(), streams.end(), [](const PlanInput& s) { return s.background; });
  std::vector<int> prompts, rest_prompts;
  int left = rules_.budget, replies = 0;
  for (int i = 0; i < count; ++i) {
    CHECK(input(i).pending > 0, "plan: stream {} of {} has nothing to compute", i, count);
    if (input(i).background && !alone) {
      if (!input(i).replying) rest_prompts.push_back(i);
    } else if (input(i).replying) {
      draft.give(i, input(i).pending, left);
      ++replies;
    } else {
      prompts.push_back(i);
    }
  }
  const int allowed = allowance(replies, left);
  int rows = allowed;
  share_out(prompts, rows, draft);
  for (int i = 0; i < count; ++i)
    if (input(i).background && input(i).replying && !alone) draft.give(i, input(i).pending, rows);
  share_out(rest_prompts, rows, draft);
  std::vector<PlanEntry> plan;
  bool limited = false;  // somebody waits for rows
  for (int i = 0; i < count; ++i) {
    const int given = draft.rows[static_cast<std::size_t>(i)];
    limited = limited || given < input(i).pending;
    if (given > 0) plan.push_back({i, given});
  }
  settle(allowed - rows, limited && replies > 0);
  return plan;
}

}  // namespace steadfast
