// bench decode|prompt: tokens per second of one stream, loading excluded, the median of runs after warm-up runs.
// Ids are arbitrary but fixed and differ in every run, so no run finds a prefix of another; draws are greedy and no end
// token ends a reply. decode: a reply after a short prompt, from its first token to its last. prompt: to the first
// token.
#include <algorithm>
#include <memory>
#include <vector>

#include "bench_command.h"
#include "bench_run.h"
#include "wait_reply.h"

namespace steadfast {
namespace {

struct BenchOptions {
  ModelOptions model;
  std::string what;
  int prompt_tokens = 0, reply_tokens = 128, runs = 5, warmup = 1;
  bool json = false;
};

// Tokens per second of one reply or of one prompt.
Result<double> measure(Engine& engine, const BenchOptions& options, int run) {
  const bool decode = options.what == "decode";
  Request request;
  request.prompt = arbitrary_ids(options.prompt_tokens, engine.card().vocab_size, run);
  request.sampling.temperature = 0;
  request.max_tokens = decode ? options.reply_tokens + 1 : 1;  // the first token belongs to the prompt's time
  request.ignore_eos = true;
  auto end = wait_reply(engine, std::move(request));
  if (!end) return end.status();
  const ReplyTimings& timings = end->timings;
  if (timings.reply_tokens != (decode ? options.reply_tokens + 1 : 1)) {
    return Status::error("the reply ended after {} tokens; give a smaller --reply-tokens or a larger window",
                         timings.reply_tokens);
  }
  if (decode) return options.reply_tokens / timings.reply_seconds;
  return options.prompt_tokens / timings.prompt_seconds;
}

void print(const BenchOptions& options, const ModelCard& card, const std::vector<double>& runs, double rate) {
  if (!options.json) {
    const std::string what = options.what == "decode"
                                 ? fmt::format("reply of {} after {}", options.reply_tokens, options.prompt_tokens)
                                 : fmt::format("prompt of {}", options.prompt_tokens);
    fmt::print("{}, {}: {:.1f} tokens per second (median of {}, {:.1f} to {:.1f})\n", card.name, what, rate,
               runs.size(), *std::min_element(runs.begin(), runs.end()), *std::max_element(runs.begin(), runs.end()));
    return;
  }
  nlohmann::ordered_json json = {{"bench", options.what},
                                 {"model", card.name},
                                 {"act", options.model.act},
                                 {"threads", options.model.threads},
                                 {"prompt_tokens", options.prompt_tokens}};
  if (options.what == "decode") json["reply_tokens"] = options.reply_tokens;
  json["tokens_per_second"] = rate;
  json["runs"] = runs;
  fmt::print("{}\n", json.dump());
}

int run(const BenchOptions& given) {
  BenchOptions options = given;
  const bool decode = options.what == "decode";
  if (options.prompt_tokens == 0) options.prompt_tokens = decode ? 16 : 512;
  if (options.prompt_tokens < 1 || options.runs < 1 || options.warmup < 0 || (decode && options.reply_tokens < 1)) {
    return misuse("bench needs at least one prompt token, one reply token and one run");
  }
  auto loaded = options.model.load();
  if (!loaded) return fail(loaded.status());
  EngineOptions engine_options;
  engine_options.context = options.prompt_tokens + (decode ? options.reply_tokens : 0) + 1;
  options.model.apply(engine_options);
  auto engine = Engine::create(std::move(*loaded), engine_options);
  if (!engine) return fail(engine.status());
  std::vector<double> runs;
  for (int index = 0; index < options.warmup + options.runs; ++index) {
    auto rate = measure(**engine, options, index);
    if (!rate) return fail(rate.status());
    if (index >= options.warmup) runs.push_back(*rate);
  }
  print(options, (*engine)->card(), runs, median(runs));
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
    command->add_option("--prompt-tokens", options->prompt_tokens, decode ? "Default: 16" : "Default: 512");
    command->add_option("--reply-tokens", options->reply_tokens, "For decode: tokens measured")->capture_default_str();
    command->add_option("--runs", options->runs, "Measured runs")->capture_default_str();
    command->add_option("--warmup", options->warmup, "Runs before them")->capture_default_str();
    command->add_flag("--json", options->json, "Print one JSON object");
    command->callback([options, &exit_status] { exit_status = run(*options); });
  }
}

}  // namespace steadfast
