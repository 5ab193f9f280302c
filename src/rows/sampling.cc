// Penalties, filters and log-probabilities, in the order of vLLM and Hugging Face (model-spec 9.1, 9.2, 9.5):
// bias, penalties, temperature, top-k, top-p, min-p. Sums run in a fixed order, in double, by our own exponential.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/exact_math.h"
#include "rows/draw.h"

namespace steadfast {
namespace {

bool before(const std::pair<float, TokenId>& a, const std::pair<float, TokenId>& b) {
  return a.first > b.first || (a.first == b.first && a.second < b.second);
}

}  // namespace

void apply_penalties(std::span<float> logits, const SamplingParams& sampling, const History& history) {
  const auto inside = [&](TokenId id) { return id >= 0 && static_cast<std::size_t>(id) < logits.size(); };
  for (const auto& [id, bias] : sampling.logit_bias)
    if (inside(id)) logits[static_cast<std::size_t>(id)] += bias;
  const bool repeats = sampling.repetition_penalty != 1.0f;
  if (!repeats && sampling.presence_penalty == 0.0f && sampling.frequency_penalty == 0.0f) return;
  std::unordered_map<TokenId, int> in_reply, seen;
  for (const TokenId id : history.reply) ++in_reply[id];
  if (repeats) {
    seen = in_reply;
    for (const TokenId id : history.prompt) ++seen[id];
    for (const auto& [id, count] : seen) {
      if (!inside(id)) continue;
      float& logit = logits[static_cast<std::size_t>(id)];
      logit = logit > 0 ? logit / sampling.repetition_penalty : logit * sampling.repetition_penalty;
    }
  }
  for (const auto& [id, count] : in_reply) {
    if (!inside(id)) continue;
    float& logit = logits[static_cast<std::size_t>(id)];
    logit -= sampling.frequency_penalty * static_cast<float>(count);
    logit -= sampling.presence_penalty;
  }
}

void filter(std::span<float> logits, const SamplingParams& sampling, DrawScratch& scratch) {
  if (sampling.temperature != 1.0f)
    for (float& logit : logits) logit = logit / sampling.temperature;
  const bool top_k = sampling.top_k > 0 && static_cast<std::size_t>(sampling.top_k) < logits.size();
  const bool top_p = sampling.top_p < 1.0f;
  if (!top_k && !top_p && sampling.min_p <= 0.0f) return;

  auto& sorted = scratch.sorted;
  sorted.clear();
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -INFINITY) sorted.emplace_back(logits[i], static_cast<TokenId>(i));
  if (sorted.empty()) return;
  if (top_k && static_cast<std::size_t>(sampling.top_k) < sorted.size()) {
    const auto kth = sorted.begin() + (sampling.top_k - 1);
    std::nth_element(sorted.begin(), kth, sorted.end(), before);
    const float threshold = kth->first;  // all that tie with the k-th stay
    sorted.erase(
        std::remove_if(sorted.begin(), sorted.end(), [&](const auto& entry) { return entry.first < threshold; }),
        sorted.end());
  }
  std::sort(sorted.begin(), sorted.end(), before);
  std::size_t keep = sorted.size();
  const double peak = sorted.front().first;
  if (top_p) {  // drop from the low end while the dropped mass stays within 1 - p
    double total = 0;
    for (std::size_t i = sorted.size(); i-- > 0;) total += exact_exp(sorted[i].first - peak);
    const double limit = (1.0 - static_cast<double>(sampling.top_p)) * total;
    double dropped = 0;
    while (keep > 1) {
      dropped += exact_exp(sorted[keep - 1].first - peak);
      if (dropped > limit) break;
      --keep;
    }
  }
  if (sampling.min_p > 0.0f) {
    const double threshold = peak + exact_log(static_cast<double>(sampling.min_p));
    while (keep > 1 && sorted[keep - 1].first < threshold) --keep;
  }
  std::fill(logits.begin(), logits.end(), -INFINITY);
  for (std::size_t i = 0; i < keep; ++i) logits[static_cast<std::size_t>(sorted[i].second)] = sorted[i].first;
}

TokenLogprob log_probability(std::span<const float> logits, TokenId id, int top) {
  double peak = -INFINITY;
  for (const float logit : logits) peak = std::max(peak, static_cast<double>(logit));
  double total = 0;
  for (const float logit : logits) total += exact_exp(logit - peak);
  const double log_total = peak + exact_log(total);
  const auto clamp = [&](float logit) { return static_cast<float>(std::max(logit - log_total, -9999.0)); };
  TokenLogprob result;
  result.id = id;
  result.logprob = clamp(logits[static_cast<std::size_t>(id)]);
  if (top > 0) {
    std::vector<std::pair<float, TokenId>> all;
    all.reserve(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) all.emplace_back(logits[i], static_cast<TokenId>(i));
    const auto count = std::min(static_cast<std::size_t>(top), all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(), before);
    for (std::size_t i = 0; i < count; ++i) result.top.emplace_back(all[i].second, clamp(all[i].first));
  }
  return result;
}

}  // namespace steadfast
