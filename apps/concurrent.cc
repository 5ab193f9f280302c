// Each repetition has a fresh engine over the same weights, so that no prompt is found in a kept prefix.
#include "concurrent.h"

#include <algorithm>
#include <charconv>

namespace steadfast {
namespace {

// The number at the beginning of `text`, which it takes away; -1: none.
int take_number(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// Of a run of `tokens` a reply: its rates, into the level.
void note_times(Level& level, const BenchRun& run, int tokens) {
  std::vector<double> first, rates;
  for (const BenchReply& reply : run.replies) {
    first.push_back(reply.first_token_seconds());
    rates.push_back((tokens - 1) / std::max(reply.end.timings.reply_seconds, 1e-9));
  }
  level.stream_rates.push_back(median(rates));
  level.first_tokens.push_back(median(first));
  level.longest_first_tokens.push_back(*std::max_element(first.begin(), first.end()));
}

IdleMemory idle_memory(const Engine& engine) { return {engine.loaded().backend->memory_used(), engine.memory()}; }

}  // namespace

Result<LevelSpec> parse_level(const std::string& word) {
  LevelSpec spec;
  std::string_view rest = word;
  spec.streams = take_number(rest);
  if (rest.starts_with('@')) {
    rest.remove_prefix(1);
    spec.context = take_number(rest);
    if (spec.context < 1) rest = "?";
  }
  if (rest.starts_with(':')) {
    spec.kv = rest.substr(1);
    rest = spec.kv == "whole" || spec.kv == "paged" ? "" : "?";
  }
  if (spec.streams < 1 || spec.streams > 1024 || !rest.empty())
    return Status::error("--levels {}: use STREAMS, STREAMS@CONTEXT or STREAMS@CONTEXT:whole|paged, 1 to 1024 streams",
                         word);
  return spec;
}

int ConcurrentOptions::most_requests() const {
  int most = 0;
  for (const LevelSpec& level : levels) most = std::max(most, requests_of(level));
  return most;
}

void count_same(std::span<const Ids> replies, std::span<const Ids> others, Same& same) {
  int equal = 0;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i] == others[i]) {
      ++equal;
      continue;
    }
    const auto at = std::mismatch(replies[i].begin(), replies[i].end(), others[i].begin(), others[i].end()).first;
    if (same.first.empty()) same.first = fmt::format("reply {} from token {} on", i, at - replies[i].begin());
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
  std::size_t replies = options_.alone ? prompts_.size() : 0;
  for (const LevelSpec& spec : options_.levels)
    for (const Level& level : levels_of(spec, 0))
      replies += static_cast<std::size_t>(level.requests * (options_.reps + (options_.serial ? 1 : 0)));
  total_ = static_cast<int>(replies * options_.temperatures.size()) * options_.tokens;
}

Status Concurrent::run() {
  if (auto status = warm_up(); !status) return status;
  for (const float temperature : options_.temperatures) {
    if (options_.alone)
      if (auto status = run_alone(temperature); !status) return status;
    for (const LevelSpec& spec : options_.levels) {
      if (auto status = run_level(spec, temperature); !status) return status;
    }
  }
  return Status::ok();
}

bool Concurrent::all_equal() const {
  for (const Level& level : levels_)
    for (const auto& [name, same] : level.comparisons())
      if (same->equal != level.requests) return false;
  return true;
}

// One a layout.
std::vector<Level> Concurrent::levels_of(const LevelSpec& spec, float temperature) const {
  std::vector<Level> levels;
  for (const std::string& kv : spec.kv.empty() ? layouts_ : std::vector{spec.kv}) {
    Level& level = levels.emplace_back();
    level.kv = kv;
    level.temperature = temperature;
    level.streams = spec.streams;
    level.context = spec.context > 0 ? spec.context : context_;
    level.requests = options_.requests_of(spec);
  }
  return levels;
}

Result<std::unique_ptr<Engine>> Concurrent::fresh_engine(const Level& level) const {
  EngineOptions options;
  options.streams = level.streams;
  options.context = level.context;
  options_.model.apply(options);
  options.paged = level.kv == "paged";
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
  Level level = levels_of(options_.levels.front(), 0).front();
  level.streams = 1;
  auto engine = fresh_engine(level);
  if (!engine) return engine.status();
  Request request = request_of(0, 0);
  request.max_tokens = 1;
  return run_together(**engine, std::span(&request, 1), [](int) {}).status();
}

// Each reply alone in a fresh engine of one stream; made once for all levels, whatever their layouts and contexts.
Status Concurrent::run_alone(float temperature) {
  Level level = levels_of(options_.levels.front(), temperature).front();
  level.kv = layouts_.front();
  level.streams = 1;
  level.requests = options_.most_requests();
  Level each = level;
  double seconds = 0;
  for (int i = 0; i < level.requests; ++i) {
    auto engine = fresh_engine(level);
    if (!engine) return engine.status();
    if (i == 0) level.idle = idle_memory(**engine);
    const Request request = request_of(i, temperature);
    auto run = ask(**engine, std::span(&request, 1));
    if (!run) return run.status();
    seconds += run->seconds;
    note_times(each, *run, options_.tokens);
    level.ids.push_back(std::move(run->replies.front().ids));
  }
  level.rates = {options_.tokens * level.requests / seconds};
  level.stream_rates = {median(each.stream_rates)};
  level.first_tokens = {median(each.first_tokens)};
  level.longest_first_tokens = {*std::max_element(each.first_tokens.begin(), each.first_tokens.end())};
  level.reference = true;
  finish(std::move(level), references_);
  return Status::ok();
}

void Concurrent::finish(Level level, std::vector<Level>& list) {
  list.push_back(std::move(level));
  bar_.clear();
  if (on_level_) on_level_(list.back());
}

// The layouts take turns, so that what else the machine does meets both.
Status Concurrent::run_level(const LevelSpec& spec, float temperature) {
  std::vector<Level> levels = levels_of(spec, temperature);
  std::vector<Request> requests;
  for (int i = 0; i < options_.requests_of(spec); ++i) requests.push_back(request_of(i, temperature));
  for (int rep = 0; rep < options_.reps; ++rep) {
    for (Level& level : levels) {
      if (auto status = run_repetition(level, requests, rep + 1 == options_.reps); !status) return status;
    }
  }
  for (Level& level : levels)
    if (options_.alone) count_same(level.ids, references_.back().ids, level.alone);
  if (levels.size() == 2) {
    count_same(levels[1].ids, levels[0].ids, levels[1].whole);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < levels[0].rates.size(); ++i) ratios.push_back(levels[1].rates[i] / levels[0].rates[i]);
    levels[1].over_whole = median(ratios);
  }
  for (Level& level : levels) finish(std::move(level), levels_);
  return Status::ok();
}

Status Concurrent::run_repetition(Level& level, std::span<const Request> requests, bool last) {
  auto engine = fresh_engine(level);
  if (!engine) return engine.status();
  level.idle = idle_memory(**engine);
  auto run = ask(**engine, requests);
  if (!run) return run.status();
  note_times(level, *run, options_.tokens);
  level.rates.push_back(options_.tokens * level.requests / run->seconds);
  std::vector<Ids> ids;
  for (BenchReply& reply : run->replies) ids.push_back(std::move(reply.ids));
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

}  // namespace steadfast
