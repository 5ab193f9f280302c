// Planning of a round: which streams give how many rows. Knows no device, no model; docs/scheduling.md states the rules
// and what they promise. By the row law no plan changes a reply: a plan decides only when its tokens come.
//
// Replies' next tokens come first. While replies run, all other rows are paid for from the prompts' share of the time,
// with a round of n rows taken to last round_cost + n. Prompts share their rows between the oldest, which gets half,
// and the shortest. Background streams get what the others leave.
#pragma once

#include <span>
#include <vector>

namespace steadfast {

struct PlanInput {
  int pending = 0;          // tokens of the stream that were not computed yet, at least 1
  int most = 0;             // rows that it may give this round; 0: any number
  bool replying = false;    // its pending tokens are its reply's next ones: they wait for nobody
  bool background = false;  // runs in what the others leave
};

struct PlanEntry {
  int stream = 0;  // index into the input
  int rows = 0;
};

struct PlanRules {
  int budget = 512;           // rows a round, at least the number of streams
  int piece = 0;              // the most rows of one prompt in a round; 0: no limit
  double prompt_share = 0.5;  // of the time while replies run, for other rows; above 0, 1: no limit
  int round_cost = 8;         // what a round costs beside its rows (the weights are read once), in rows
};

class RoundPlanner {
 public:
  explicit RoundPlanner(const PlanRules& rules) : rules_(rules) {}

  // Streams in order of precedence: the others' before the background's, in each the oldest first. Entries ascend.
  std::vector<PlanEntry> plan(std::span<const PlanInput> streams);
  const PlanRules& rules() const { return rules_; }

 private:
  struct Draft;
  int allowance(int replies, int left);
  void settle(int used, bool limited);
  void share_out(std::span<const int> prompts, int& rows, Draft& draft);

  PlanRules rules_;
  double credit_ = 0;  // rows that the share still allows; below one once rows were refused
  bool turn_ = false;  // whose turn it is to get the odd row: the oldest's or the shortest's
};

}  // namespace steadfast
