// Each repetition has a fresh engine over the same weights, so that no prompt is found in a kept prefix.
#include "concurrent.h"

#include <algorithm>

namespace steadfast {

void count_same(std::span<const Ids> streams, std::span<const Ids> others, Same& same) {
  int equal = 0;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (streams[i] == others[i]) {
      ++equal;
      continue;
    }
    const auto at = std::mismatch(streams[i].begin(), streams[i].end(), others[i].begin(), others[i].end()).first;
    if (same.first.empty()) same.first = fmt::format("stream {} from token {} on", i, at - streams[i].begin());
  }
  same.equal = same.equal < 0 ? equal : std::min(same.equal, equal);
}

std::vector<std::pair<const char*, const Same*>> Level::comparisons() const {
  std::vector<std::pair<const char*, const Same*>> made;
  for (const auto& [name, same] :
       {std::pair("alone", &alone), {"serial", &serial}, {"repeated", &repeated}, {"whole", &whole}})
    if (same->equal >= 0) made.emplace_back(name, same);
  return made;
}

Concurrent::Concurrent(const ConcurrentOptions& options, std::shared_ptr<LoadedModel> loaded, std::vector<Ids> prompts,
                       std::vector<std::string> layouts)
    : options_(options),
      loaded_(std::move(loaded)),
      prompts_(std::move(prompts)),
      layouts_(std::move(layouts)),
      bar_("bench") {
  context_ = options_.context;
  for (const Ids& prompt : prompts_)
    if (options_.context == 0) context_ = std::max(context_, static_cast<int>(prompt.size()) + options_.tokens);
  int replies = 0;
  for (const int streams : options_.levels) replies += streams * (options_.reps + (options_.serial ? 1 : 0));
  if (options_.alone) replies += static_cast<int>(prompts_.size());
  total_ = replies * static_cast<int>(options_.temperatures.size() * layouts_.size()) * options_.tokens;
}

Status Concurrent::run() {
  if (auto status = warm_up(); !status) return status;
  for (const float temperature : options_.temperatures) {
    for (const int streams : options_.levels) {
      if (auto status = run_level(temperature, streams); !status) return status;
    }
  }
  bar_.clear();
  return Status::ok();
}

bool Concurrent::all_equal() const {
  for (const Level& level : levels_)
    for (const auto& [name, same] : level.comparisons())
      if (same->equal != level.streams) return false;
  return true;
}

Result<std::unique_ptr<Engine>> Concurrent::fresh_engine(const std::string& kv, int streams) const {
  EngineOptions options;
  options.streams = streams;
  options.context = context_;
  options_.model.apply(options);
  options.paged = kv == "paged";
  return Engine::create(loaded_, options);
}

Request Concurrent::request_of(int index, float temperature) const {
  Request request;
  request.prompt = prompts_[static_cast<std::size_t>(index)];
  request.sampling.temperature = temperature;
  request.sampling.seed = static_cast<std::uint64_t>(index) + 1;
  request.max_tokens = options_.tokens;
  request.ignore_eos = true;
  return request;
}

Result<BenchRun> Concurrent::ask(Engine& engine, std::span<const Request> requests) {
  auto run = run_together(engine, requests, [this](int tokens) { bar_.show(done_ + tokens, total_); });
  if (!run) return run;
  for (const BenchReply& reply : run->replies) {
    if (static_cast<int>(reply.ids.size()) != options_.tokens)
      return Status::error("a reply ended after {} tokens; give a smaller --tokens or a larger --context",
                           reply.ids.size());
  }
  done_ += static_cast<int>(requests.size()) * options_.tokens;
  return run;
}

// The weights' first touch is not measured.
Status Concurrent::warm_up() {
  auto engine = fresh_engine(layouts_.front(), 1);
  if (!engine) return engine.status();
  Request request = request_of(0, 0);
  request.max_tokens = 1;
  return run_together(**engine, std::span(&request, 1), [](int) {}).status();
}

// The layouts take turns, so that what else the machine does meets both.
Status Concurrent::run_level(float temperature, int streams) {
  std::vector<Level> levels(layouts_.size());
  for (std::size_t i = 0; i < levels.size(); ++i) {
    levels[i].kv = layouts_[i];
    levels[i].temperature = temperature;
    levels[i].streams = streams;
  }
  std::vector<Request> requests;
  for (int i = 0; i < streams; ++i) requests.push_back(request_of(i, temperature));
  for (int rep = 0; rep < options_.reps; ++rep) {
    for (Level& level : levels) {
      if (auto status = run_repetition(level, requests, rep + 1 == options_.reps); !status) return status;
    }
  }
  for (Level& level : levels) {
    if (!options_.alone) break;
    auto ids = alone(level.kv, temperature, requests);
    if (!ids) return ids.status();
    count_same(level.ids, *ids, level.alone);
  }
  if (levels.size() == 2) {
    count_same(levels[1].ids, levels[0].ids, levels[1].whole);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < levels[0].rates.size(); ++i) ratios.push_back(levels[1].rates[i] / levels[0].rates[i]);
    levels[1].over_whole = median(ratios);
  }
  std::move(levels.begin(), levels.end(), std::back_inserter(levels_));
  return Status::ok();
}

Status Concurrent::run_repetition(Level& level, std::span<const Request> requests, bool last) {
  auto engine = fresh_engine(level.kv, level.streams);
  if (!engine) return engine.status();
  auto run = ask(**engine, requests);
  if (!run) return run.status();
  std::vector<double> first, rates;
  std::vector<Ids> ids;
  for (BenchReply& reply : run->replies) {
    first.push_back(reply.first_token_seconds());
    rates.push_back((options_.tokens - 1) / std::max(reply.end.timings.reply_seconds, 1e-9));
    ids.push_back(std::move(reply.ids));
  }
  level.rates.push_back(options_.tokens * level.streams / run->seconds);
  level.stream_rates.push_back(median(rates));
  level.first_tokens.push_back(median(first));
  level.longest_first_tokens.push_back(*std::max_element(first.begin(), first.end()));
  if (!level.ids.empty()) count_same(ids, level.ids, level.repeated);
  level.ids = std::move(ids);
  return last && options_.serial ? run_serially(level, **engine, requests) : Status::ok();
}

// In the engine that has just answered them all at once: on pages these prompts find their prefixes.
Status Concurrent::run_serially(Level& level, Engine& engine, std::span<const Request> requests) {
  std::vector<Ids> ids;
  for (const Request& request : requests) {
    auto run = ask(engine, std::span(&request, 1));
    if (!run) return run.status();
    ids.push_back(std::move(run->replies.front().ids));
  }
  count_same(level.ids, ids, level.serial);
  return Status::ok();
}

// Each reply alone in a fresh engine; made once for all levels.
Result<std::vector<Ids>> Concurrent::alone(const std::string& kv, float temperature,
                                           std::span<const Request> requests) {
  std::vector<Ids>& known = alone_[{kv, temperature}];
  while (known.size() < requests.size()) {
    auto engine = fresh_engine(kv, 1);
    if (!engine) return engine.status();
    auto run = ask(**engine, requests.subspan(known.size(), 1));
    if (!run) return run.status();
    known.push_back(std::move(run->replies.front().ids));
  }
  return known;
}

}  // namespace steadfast
