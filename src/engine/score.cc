// A scored text is one stream whose every row gives logits; the head runs over few rows at a time to bound memory.
#include "engine/score.h"

#include <algorithm>
#include <cmath>

#include "base/exact_math.h"

namespace steadfast {
namespace {

constexpr int kHeadRows = 16;

}  // namespace

Status score(const LoadedModel& loaded, std::span<const TokenId> ids, int chunk, const LogitsSink& sink, int page) {
  const Model& model = *loaded.model;
  const int count = static_cast<int>(ids.size());
  if (count == 0) return Status::error("there is nothing to score: the list of ids is empty");
  if (count > model.config().max_positions)
    return Status::error("{} tokens are more than the {} positions that the model was made for", count,
                         model.config().max_positions);
  for (const TokenId id : ids)
    if (id < 0 || id >= model.config().vocab)
      return Status::error("id {} is outside the vocabulary of {}", id, model.config().vocab);
  const int rows = std::min(chunk, count);
  auto workspace = Workspace::create(model.backend(), model.config(), rows);
  if (!workspace) return workspace.status();
  const CacheShape shape = model.cache_shape(loaded.kv_dtype);
  std::unique_ptr<PagePool> pool;
  if (page > 0) {
    auto made = PagePool::create(model.backend(), shape, page, (count + page - 1) / page);
    if (!made) return made.status();
    pool = std::move(*made);
  }
  auto state = pool ? StreamState::create_paged(model.backend(), *pool, count)
                    : StreamState::create(model.backend(), shape, count);
  if (!state) return state.status();
  const auto vocab = static_cast<std::size_t>(model.config().vocab);
  std::vector<float> logits(vocab * kHeadRows);
  for (int first = 0; first < count; first += rows) {
    const int here = std::min(rows, count - first);
    CHECK((*state)->reserve(first + here), "a pool of {} positions for {}", (*state)->window(), first + here);
    Round round;
    round.add(**state, first, ids.data() + first, here);
    for (int i = 0; i < here; ++i) round.logit_rows.push_back(i);
    if (auto status = model.forward(round, **workspace); !status) return status;
    for (int row = 0; row < here; row += kHeadRows) {
      const int part = std::min(kHeadRows, here - row);
      const Matrix to(logits.data(), part, static_cast<int>(vocab));
      if (auto status = model.head(**workspace, row, to); !status) return status;
      if (auto status = sink(first + row, part, logits.data()); !status) return status;
    }
  }
  return Status::ok();
}

double negative_log_likelihood(std::span<const float> logits, TokenId id) {
  double peak = -INFINITY, total = 0;
  for (const float logit : logits) peak = std::max(peak, static_cast<double>(logit));
  for (const float logit : logits) total += exact_exp(logit - peak);
  return peak + exact_log(total) - static_cast<double>(logits[static_cast<std::size_t>(id)]);
}

}  // namespace steadfast
