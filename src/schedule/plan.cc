// Single rows first so that no reply waits for a prompt; what is left of the budget goes to prompts in order of age.
#include "schedule/plan.h"

#include <algorithm>

namespace steadfast {

std::vector<PlanEntry> plan_round(std::span<const PlanInput> streams, int budget, int piece) {
  std::vector<PlanEntry> plan;
  int left = budget;
  for (int i = 0; i < static_cast<int>(streams.size()) && left > 0; ++i) {
    if (streams[static_cast<std::size_t>(i)].pending != 1) continue;
    plan.push_back({i, 1});
    --left;
  }
  for (int i = 0; i < static_cast<int>(streams.size()) && left > 0; ++i) {
    const int pending = streams[static_cast<std::size_t>(i)].pending;
    if (pending <= 1) continue;
    const int rows = std::min({pending, left, piece > 0 ? piece : pending});
    plan.push_back({i, rows});
    left -= rows;
  }
  std::sort(plan.begin(), plan.end(), [](const PlanEntry& a, const PlanEntry& b) { return a.stream < b.stream; });
  return plan;
}

}  // namespace steadfast
