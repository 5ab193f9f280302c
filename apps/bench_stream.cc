// bench decode|prompt: tokens per second of one stream, loading excluded, the median of runs after warm-up runs.
// Ids are arbitrary but fixed and differ in every run, so no run finds a prefix of another; draws are greedy and no end
// token ends a reply. decode: a reply after a short prompt, from its first token to its last. prompt: to the first
// token.
#include <algorithm>
#include <future>
#include <memory>
#include <vector>

#include "bench_command.h"
#include "bench_run.h"

namespace steadfast {
namespace {

struct BenchOptions {
  ModelOptions model;
  std::string what;
  std::vector<int> prompt_levels, stream_levels = {1};
  int prompt_tokens = 0, streams = 1;  // the level measured now
  int reply_tokens = 128, runs = 5, warmup = 1, rows = 0;
  bool json = false, ops = false;
};

Request request_of(const Engine& engine, const BenchOptions& options, int run) {
  const bool decode = options.what == "decode";
  Request request;
  request.prompt = arbitrary_ids(options.prompt_tokens, engine.card().vocab_size, run);
  request.sampling.temperature = 0;
  request.max_tokens = decode ? options.reply_tokens + 1 : 1;  // the first token belongs to the prompt's time
  request.ignore_eos = true;
  return request;
}

// Tokens per second of one reply or of one prompt; of several streams at once, all together by the slowest.
Result<double> measure(Engine& engine, const BenchOptions& options, int run) {
  const bool decode = options.what == "decode";
  std::vector<std::promise<ReplyEnd>> ends(static_cast<std::size_t>(options.streams));
  for (int stream = 0; stream < options.streams; ++stream) {
    ReplyHandler handler;
    handler.on_end = [&end = ends[static_cast<std::size_t>(stream)]](const ReplyEnd& last) { end.set_value(last); };
    auto handle = engine.submit(request_of(engine, options, run * options.streams + stream), std::move(handler));
    if (!handle) return handle.status();
  }
  ReplyTimings timings;
  for (auto& promise : ends) {
    const ReplyEnd end = promise.get_future().get();
    if (end.reason == FinishReason::kError) return Status::error("{}", end.error);
    if (timings.reply_tokens == 0 || end.timings.reply_seconds > timings.reply_seconds) timings = end.timings;
  }
  if (timings.reply_tokens != (decode ? options.reply_tokens + 1 : 1)) {
    return Status::error("the reply ended after {} tokens; give a smaller --reply-tokens or a larger window",
                         timings.reply_tokens);
  }
  if (decode) return options.streams * options.reply_tokens / timings.reply_seconds;
  return options.streams * options.prompt_tokens / timings.prompt_seconds;
}

// Where the time went, each launch timed alone: the largest share first.
void print_ops(const Engine& engine) {
  auto times = engine.loaded().backend->op_times();
  std::sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.milliseconds > b.milliseconds; });
  double total = 0;
  for (const OpTime& op : times) total += op.milliseconds;
  for (const OpTime& op : times)
    fmt::print("{:<44} {:>8} launches {:>10.2f} us each {:>6.1f}%\n", op.name, op.launches,
               1e3 * op.milliseconds / static_cast<double>(op.launches), 100 * op.milliseconds / total);
}

void print(const BenchOptions& options, const Engine& engine, const std::vector<double>& runs, double rate) {
  const ModelCard& card = engine.card();
  if (!options.json) {
    const std::string what = options.what == "decode"
                                 ? fmt::format("reply of {} after {}", options.reply_tokens, options.prompt_tokens)
                                 : fmt::format("prompt of {}", options.prompt_tokens);
    const std::string streams = options.streams > 1 ? fmt::format("{} streams, ", options.streams) : "";
    fmt::print("{}, {}{}: {:.1f} tokens per second (median of {}, {:.1f} to {:.1f})\n", card.name, streams, what, rate,
               runs.size(), *std::min_element(runs.begin(), runs.end()), *std::max_element(runs.begin(), runs.end()));
    return;
  }
  nlohmann::ordered_json json = {{"bench", options.what},
                                 {"model", card.name},
                                 {"device", engine.loaded().backend->describe()},
                                 {"act", to_string(engine.loaded().backend->act())},
                                 {"prompt_act", to_string(engine.loaded().backend->prompt_act())},
                                 {"threads", options.model.threads},
                                 {"streams", options.streams},
                                 {"prompt_tokens", options.prompt_tokens}};
  if (options.what == "decode") json["reply_tokens"] = options.reply_tokens;
  json["tokens_per_second"] = rate;
  json["runs"] = runs;
  fmt::print("{}\n", json.dump());
}

int run(const BenchOptions& given) {
  BenchOptions options = given;
  const bool decode = options.what == "decode";
  if (options.prompt_levels.empty()) options.prompt_levels = {decode ? 16 : 512};
  const auto& [fewest, longest] =
      std::pair(*std::min_element(options.prompt_levels.begin(), options.prompt_levels.end()),
                *std::max_element(options.prompt_levels.begin(), options.prompt_levels.end()));
  const int most_streams = *std::max_element(options.stream_levels.begin(), options.stream_levels.end());
  if (fewest < 1 || options.runs < 1 || options.warmup < 0 || (decode && options.reply_tokens < 1)) {
    return misuse("bench needs at least one prompt token, one reply token and one run");
  }
  if (*std::min_element(options.stream_levels.begin(), options.stream_levels.end()) < 1 || options.rows < 0)
    return misuse("--streams and --rows are numbers above 0");
  options.model.timed = options.ops;
  auto loaded = options.model.load();
  if (!loaded) return fail(loaded.status());
  EngineOptions engine_options;
  engine_options.context = longest + (decode ? options.reply_tokens : 0) + 1;
  options.model.apply(engine_options);
  engine_options.streams = most_streams;
  if (options.rows > 0) engine_options.row_budget = options.rows;
  auto engine = Engine::create(std::move(*loaded), engine_options);
  if (!engine) return fail(engine.status());
  int index = 0;  // of all runs: no prompt comes twice
  for (const int tokens : options.prompt_levels) {
    for (const int streams : options.stream_levels) {
      options.prompt_tokens = tokens;
      options.streams = streams;
      std::vector<double> runs;
      for (int run = 0; run < options.warmup + options.runs; ++run) {
        auto rate = measure(**engine, options, index++);
        if (!rate) return fail(rate.status());
        if (run >= options.warmup) runs.push_back(*rate);
      }
      print(options, **engine, runs, median(runs));
      std::fflush(stdout);
    }
  }
  if (options.ops) print_ops(**engine);
  return 0;
}

}  // namespace

void add_bench_stream(CLI::App& bench, int& exit_status) {
  for (const char* what : {"decode", "prompt"}) {
    auto options = std::make_shared<BenchOptions>();
    options->what = what;
    const bool decode = options->what == "decode";
    auto* command = bench.add_subcommand(
        what, decode ? "Tokens per second of one stream's reply" : "Tokens per second of one stream's prompt");
    options->model.add_to(*command);
    command
        ->add_option("--prompt-tokens", options->prompt_levels,
                     decode ? "One or several; default: 16" : "One or several; default: 512")
        ->delimiter(',');
    command->add_option("--reply-tokens", options->reply_tokens, "For decode: tokens measured")->capture_default_str();
    command->add_option("--runs", options->runs, "Measured runs")->capture_default_str();
    command->add_option("--warmup", options->warmup, "Runs before them")->capture_default_str();
    command->add_option("--streams", options->stream_levels, "Streams at once, one or several numbers")->delimiter(',');
    command->add_option("--rows", options->rows, "The most rows a round (default: the backend's)");
    command->add_flag("--ops", options->ops, "CUDA: times of each op too, every launch alone, so the rate is lower");
    command->add_flag("--json", options->json, "Print one JSON object");
    command->callback([options, &exit_status] { exit_status = run(*options); });
  }
}

}  // namespace steadfast
