// Scoring in pieces, in shared rounds and through the engine; comparison of bits.
#include "verify/compare.h"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <mutex>

#include "engine/score.h"

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

namespace {

// Streams with their memory: a window each, or pages of one pool.
struct SideBySide {
  std::unique_ptr<PagePool> pool;
  std::unique_ptr<Workspace> workspace;
  std::vector<std::unique_ptr<StreamState>> states;
};

Result<SideBySide> place(const LoadedModel& loaded, std::span<const std::vector<TokenId>> ids, int most_rows,
                         int page) {
  const Model& model = *loaded.model;
  const CacheShape shape = model.cache_shape(loaded.kv_dtype);
  SideBySide all;
  auto workspace = Workspace::create(model.backend(), model.config(), most_rows);
  if (!workspace) return workspace.status();
  all.workspace = std::move(*workspace);
  if (page > 0) {
    int pages = 0;
    for (const auto& own : ids) pages += (static_cast<int>(own.size()) + page - 1) / page;
    auto pool = PagePool::create(model.backend(), shape, page, pages);
    if (!pool) return pool.status();
    all.pool = std::move(*pool);
  }
  for (const auto& own : ids) {
    const int window = static_cast<int>(own.size());
    auto state = all.pool ? StreamState::create_paged(model.backend(), *all.pool, window)
                          : StreamState::create(model.backend(), shape, window);
    if (!state) return state.status();
    all.states.push_back(std::move(*state));
  }
  return all;
}

}  // namespace

Result<std::vector<std::vector<float>>> logits_together(const LoadedModel& loaded,
                                                        std::span<const std::vector<TokenId>> ids,
                                                        std::span<const int> steps, int page) {
  CHECK(ids.size() == steps.size(), "{} streams, {} steps", ids.size(), steps.size());
  int most_rows = 0;
  for (const int step : steps) most_rows += step;
  auto placed = place(loaded, ids, most_rows, page);
  if (!placed) return placed.status();
  const Model& model = *loaded.model;
  const auto vocab = static_cast<std::size_t>(loaded.card.vocab_size);
  std::vector<std::vector<float>> logits(ids.size());
  std::vector<std::size_t> done(ids.size(), 0);
  for (;;) {
    Round round;
    std::vector<std::size_t> owner;
    for (std::size_t s = 0; s < ids.size(); ++s) {
      const auto rows = std::min(static_cast<std::size_t>(steps[s]), ids[s].size() - done[s]);
      if (rows == 0) continue;
      StreamState& state = *placed->states[s];
      CHECK(state.reserve(static_cast<int>(done[s] + rows)), "a pool planned too small");
      round.add(state, static_cast<int>(done[s]), ids[s].data() + done[s], static_cast<int>(rows));
      owner.insert(owner.end(), rows, s);
      done[s] += rows;
    }
    if (round.rows() == 0) return logits;
    for (int i = 0; i < round.rows(); ++i) round.logit_rows.push_back(i);
    if (auto status = model.forward(round, *placed->workspace); !status) return status;
    std::vector<float> out(owner.size() * vocab);
    const Matrix to(out.data(), round.rows(), static_cast<int>(vocab));
    if (auto status = model.head(*placed->workspace, 0, to); !status) return status;
    for (std::size_t r = 0; r < owner.size(); ++r) {
      const auto row = std::span(out).subspan(r * vocab, vocab);
      logits[owner[r]].insert(logits[owner[r]].end(), row.begin(), row.end());
    }
  }
}

Result<std::vector<std::vector<TokenId>>> ask(Engine& engine, std::span<const Request> requests) {
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t left = requests.size();
  Status failure;
  std::vector<std::vector<TokenId>> ids(requests.size());
  const auto finish = [&](const std::string& error) {
    const std::lock_guard lock(mutex);
    if (!error.empty() && failure) failure = Status::error("{}", error);
    --left;
    ended.notify_all();
  };
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ReplyHandler handler;
    handler.on_piece = [&ids, i](const ReplyPiece& piece) {
      ids[i].insert(ids[i].end(), piece.ids.begin(), piece.ids.end());
    };
    handler.on_end = [&finish](const ReplyEnd& end) { finish(end.reason == FinishReason::kError ? end.error : ""); };
    auto handle = engine.submit(requests[i], std::move(handler));
    if (!handle) finish(handle.message());
  }
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return left == 0; });
  if (!failure) return failure;
  return ids;
}

std::string first_difference(std::span<const float> a, std::span<const float> b, std::size_t width) {
  if (a.size() != b.size()) return fmt::format("sizes {} and {}", a.size(), b.size());
  std::size_t differing = 0, first = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    if (differing++ == 0) first = i;
  }
  if (differing == 0) return "equal";
  return fmt::format("{} of {} differ, first at position {} ({} and {})", differing, a.size(), first / width, a[first],
                     b[first]);
}

}  // namespace steadfast
