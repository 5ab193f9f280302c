// Scoring in pieces and in shared rounds; comparison of bits.
#include "verify/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/score.h"
#include "verify/reply_run.h"
#include "verify/row_run.h"

namespace steadfast {

std::vector<TokenId> some_ids(const LoadedModel& loaded, int count, std::uint64_t seed) {
  std::vector<TokenId> ids;
  std::uint64_t x = seed * 0x9E3779B97F4A7C15u + 1;
  for (int i = 0; i < count; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    ids.push_back(static_cast<TokenId>((x >> 33) % static_cast<std::uint64_t>(loaded.card.vocab_size)));
  }
  return ids;
}

Result<std::vector<float>> logits_of(const LoadedModel& loaded, std::span<const TokenId> ids, int chunk) {
  std::vector<float> all;
  const auto vocab = static_cast<std::size_t>(loaded.card.vocab_size);
  const auto status = score(loaded, ids, chunk, [&](int, int rows, const float* logits) {
    all.insert(all.end(), logits, logits + static_cast<std::size_t>(rows) * vocab);
    return Status::ok();
  });
  if (!status) return status;
  return all;
}

Result<std::vector<std::vector<float>>> logits_together(const LoadedModel& loaded,
                                                        std::span<const std::vector<TokenId>> ids,
                                                        std::span<const int> steps, int page) {
  CHECK(ids.size() == steps.size(), "{} streams, {} steps", ids.size(), steps.size());
  std::vector<StreamScript> scripts;
  for (std::size_t s = 0; s < ids.size(); ++s) scripts.push_back({ids[s], {steps[s]}, 0, 0, {}});
  auto taken = run_rows(loaded, scripts, {page, false}, 1);
  if (!taken) return taken.status();
  std::vector<std::vector<float>> logits;
  for (TakenRows& rows : *taken) logits.push_back(std::move(rows.logits));
  return logits;
}

Result<std::vector<std::vector<TokenId>>> ask(Engine& engine, std::span<const Request> requests) {
  auto replies = ask(engine, requests, Asking{});
  if (!replies) return replies.status();
  std::vector<std::vector<TokenId>> ids;
  for (Reply& reply : *replies) ids.push_back(std::move(reply.ids));
  return ids;
}

RowDifference compare_rows(std::span<const float> a, std::span<const float> b, std::size_t width) {
  CHECK(a.size() == b.size() && a.size() % width == 0, "{} and {} values in rows of {}", a.size(), b.size(), width);
  RowDifference difference;
  for (std::size_t row = 0; row < a.size() / width; ++row) {
    const auto left = a.subspan(row * width, width), right = b.subspan(row * width, width);
    if (std::memcmp(left.data(), right.data(), left.size_bytes()) == 0) continue;
    if (difference.rows++ > 0) continue;
    difference.first = row;
    for (std::size_t i = 0; i < width; ++i) {
      if (std::memcmp(&left[i], &right[i], sizeof(float)) == 0) continue;
      const double distance = std::abs(static_cast<double>(left[i]) - static_cast<double>(right[i]));
      difference.distance =
          std::max(difference.distance, std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance);
    }
  }
  return difference;
}

std::string first_difference(std::span<const float> a, std::span<const float> b, std::size_t width) {
  if (a.size() != b.size()) return fmt::format("sizes {} and {}", a.size(), b.size());
  const RowDifference difference = compare_rows(a, b, width);
  if (difference.rows == 0) return "equal";
  return fmt::format("{} of {} rows differ, first at position {}, logit distance {} there", difference.rows,
                     a.size() / width, difference.first, difference.distance);
}

}  // namespace steadfast
