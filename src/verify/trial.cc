// Sizes follow the model: its window bounds the lengths, its vocabulary how many rows' logits are kept.
#include "verify/trial.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <thread>

#include "verify/compare.h"

namespace steadfast {
namespace {

constexpr int kMostStreams = 33;

void count(Equality& row, bool equal, Difference&& difference) {
  ++row.cases;
  if (equal) return;
  if (row.differing++ == 0) row.first = std::move(difference);
}

}  // namespace

Result<std::unique_ptr<Trial>> Trial::create(const std::filesystem::path& path, const LoadOptions& base,
                                             const VerifyOptions& options) {
  std::unique_ptr<Trial> trial(new Trial(path, base, options));
  trial->base_.progress = nullptr;
  auto loaded = trial->open(base);
  if (!loaded) return loaded.status();
  trial->loaded_ = std::move(*loaded);
  trial->default_kv_ = trial->loaded_->kv_dtype;
  trial->window_ = trial->loaded_->card.window;
  trial->size_up();
  return trial;
}

Result<std::unique_ptr<LoadedModel>> Trial::open(const LoadOptions& options) const {
  LoadOptions all = options;
  if (options_.plant) {
    const int threads = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
    all.wrap = [fault = *options_.plant, threads](std::unique_ptr<Backend> backend) {
      const int workers = runs_on_cpu(*backend) ? threads : 0;
      return plant(fault, std::move(backend), workers);
    };
  }
  auto loaded = load_model(path_, all);
  if (loaded && loaded_) (*loaded)->kv_dtype = loaded_->kv_dtype;
  return loaded;
}

std::vector<DType> Trial::kv_types() const {
  if (base_.kv_dtype) return {*base_.kv_dtype};
  std::vector<DType> types = {default_kv_};
  if (options_.plant) return types;
  for (const DType kv : {DType::kBF16, DType::kF32, DType::kF8E4M3})
    if (kv != default_kv_ && loaded_->backend->check_model(shapes_of(loaded_->model->config(), kv)))
      types.push_back(kv);
  return types;
}

void Trial::size_up() {
  // Past two borders of 512 positions, or past one. Rounding to bf16 hides most of the least differences: more rows.
  const int spans = full() ? 1300 : loaded_->backend->act() == Act::kBF16 ? 1100 : 620;
  std::size_t rows = 0;
  for (int s = 0; s < kMostStreams; ++s) {
    const int length = std::min(window_, s == 0 ? spans : 10 + s * 7 % 23 * (full() ? 4 : 2));
    const std::vector<std::vector<int>> steps = {{64, 1, 97, 7, 33}, {1}, {13, 1, 1}, {3}, {5, 16, 1}};
    StreamScript script;
    script.ids = some_ids(*loaded_, length, 100 + static_cast<std::uint64_t>(s));
    script.steps = steps[static_cast<std::size_t>(s) % steps.size()];
    script.prompt = std::max(1, length * (3 - s % 3) / 4);  // the row law holds for rows in their roles
    rows += script.ids.size();
    crowd_.push_back(std::move(script));
  }
  constexpr std::size_t kMostFloats = std::size_t{32} << 20;  // 128 MiB of logits
  stride_ = static_cast<int>(rows * static_cast<std::size_t>(loaded_->card.vocab_size) / kMostFloats) + 1;
}

std::vector<StreamScript> Trial::crowd(int streams) const {
  CHECK(streams <= kMostStreams, "a crowd of {}", streams);
  return {crowd_.begin(), crowd_.begin() + streams};
}

Result<std::vector<TakenRows>> Trial::run(std::span<const StreamScript> scripts, const Placement& placement) const {
  return run_rows(*loaded_, scripts, placement, stride_);
}

Result<const TakenRows*> Trial::alone(int stream) {
  const auto key = std::pair(kv(), stream);
  auto found = alone_rows_.find(key);
  if (found == alone_rows_.end()) {
    StreamScript script = crowd_[static_cast<std::size_t>(stream)];
    script.steps = {static_cast<int>(script.ids.size())};
    auto taken = run({&script, 1});
    if (!taken) return taken.status();
    found = alone_rows_.emplace(key, std::move(taken->front())).first;
  }
  return &found->second;
}

Request Trial::request(std::vector<TokenId> prompt, int number) const {
  Request request;
  const int room = context() - static_cast<int>(prompt.size());
  request.max_tokens = std::min(full() ? 6 + number % 11 : 4 + number % 9, room);
  request.prompt = std::move(prompt);
  request.ignore_eos = true;
  request.top_logprobs = 0;
  request.sampling.temperature = number % 2 == 0 ? 0.0f : 0.8f;
  request.sampling.top_p = number % 4 == 1 ? 0.95f : 1.0f;
  request.sampling.repetition_penalty = number % 4 == 3 ? 1.1f : 1.0f;
  request.sampling.seed = 1000 + static_cast<std::uint64_t>(number);
  return request;
}

std::vector<Request> Trial::requests(int count) const {
  std::vector<Request> all;
  if (window_ < 2) return all;
  for (int i = 0; i < count; ++i) {
    const int length = std::clamp(5 + 17 * i % 97, 1, std::max(1, window_ / 2));
    all.push_back(request(some_ids(*loaded_, length, 200 + static_cast<std::uint64_t>(i)), i));
  }
  return all;
}

Result<std::unique_ptr<Engine>> Trial::engine(EngineOptions options) const {
  options.context = context();
  return Engine::create(loaded_, options);
}

Result<const Reply*> Trial::alone(const Request& request) {
  ReplyKey key(kv(), request.prompt, request.max_tokens, request.sampling.seed, request.sampling.temperature);
  auto found = alone_replies_.find(key);
  if (found == alone_replies_.end()) {
    auto own = engine({.streams = 1});
    if (!own) return own.status();
    auto replies = ask(**own, {&request, 1}, Asking{});
    if (!replies) return replies.status();
    found = alone_replies_.emplace(std::move(key), std::move(replies->front())).first;
  }
  return &found->second;
}

void Trial::compare(Equality& row, const std::string& where, const TakenRows& expected, const TakenRows& actual) const {
  const std::size_t taken = actual.positions.size();
  CHECK(taken <= expected.positions.size() &&
            std::equal(actual.positions.begin(), actual.positions.end() - 1, expected.positions.begin()),
        "rows of other positions: {} and {}", taken, expected.positions.size());
  // The last row of a stream that left early may be one that the other way did not take.
  const std::size_t rows = actual.positions.back() == expected.positions[taken - 1] ? taken : taken - 1;
  const auto vocab = static_cast<std::size_t>(model().card.vocab_size);
  const RowDifference difference =
      compare_rows(std::span(expected.logits).first(rows * vocab), std::span(actual.logits).first(rows * vocab), vocab);
  row.rows += static_cast<std::int64_t>(rows);
  count(row, difference.rows == 0,
        {fmt::format("{}, {} cache", where, kv_dtype_name(kv())),
         fmt::format("{} of {} rows differ", difference.rows, rows),
         difference.rows == 0 ? 0 : actual.positions[difference.first], difference.distance});
}

void Trial::compare(Equality& row, const std::string& where, const Request& request, const Reply& expected,
                    const Reply& actual) const {
  ++row.replies;
  Difference difference{fmt::format("{}, {} cache", where, kv_dtype_name(kv())), "", 0, 0};
  const bool cut = actual.reason == FinishReason::kCancelled;  // then its tokens are the other's first ones
  const std::size_t tokens = std::min(expected.ids.size(), actual.ids.size());
  std::size_t at = 0;
  while (at < tokens && expected.ids[at] == actual.ids[at] &&
         std::bit_cast<std::uint32_t>(expected.logprobs[at]) == std::bit_cast<std::uint32_t>(actual.logprobs[at]))
    ++at;
  const bool equal =
      at == tokens && (cut || (expected.ids.size() == actual.ids.size() && expected.reason == actual.reason));
  difference.position = static_cast<std::int64_t>(request.prompt.size() + at);
  if (at < tokens) {
    difference.what = fmt::format("token {}: ids {} and {}", at, expected.ids[at], actual.ids[at]);
    difference.distance =
        std::abs(static_cast<double>(expected.logprobs[at]) - static_cast<double>(actual.logprobs[at]));
  } else {
    difference.what = fmt::format("{} tokens ({}) and {} ({})", expected.ids.size(), to_string(expected.reason),
                                  actual.ids.size(), to_string(actual.reason));
  }
  count(row, equal, std::move(difference));
}

}  // namespace steadfast
