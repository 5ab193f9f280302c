// bench prefix: the time to the first token of a prompt whose beginning another prompt has left behind (warm) beside
// that of the same prompt in a fresh engine (cold), and whether the replies are the same.
#include <algorithm>
#include <memory>

#include "bench_command.h"
#include "bench_run.h"

namespace steadfast {
namespace {

struct PrefixOptions {
  ModelOptions model;
  int prefix = 2000, rest = 32, tokens = 16, reps = 5;
  bool json = false;
};

struct Sample {
  double cold = 0, warm = 0;  // seconds to the first token
  int reused = 0;             // rows of the warm prompt that were found
  bool same = false;          // the warm reply's ids are the cold one's
};

class Prefix {
 public:
  Prefix(const PrefixOptions& options, std::shared_ptr<LoadedModel> loaded)
      : options_(options), loaded_(std::move(loaded)) {}

  // The prefix is another one in each repetition.
  Result<Sample> measure(int rep) const {
    Request request;
    request.prompt = arbitrary_ids(options_.prefix, loaded_->card.vocab_size, rep);
    request.sampling.temperature = 0;
    request.max_tokens = options_.tokens;
    request.ignore_eos = true;
    Request before = request;
    append(before, rep, 1);
    append(request, rep, 2);
    auto fresh = fresh_engine();
    if (!fresh) return fresh.status();
    auto cold = run_together(**fresh, std::span(&request, 1), [](int) {});
    if (!cold) return cold.status();
    fresh->reset();  // one engine at a time
    auto engine = fresh_engine();
    if (!engine) return engine.status();
    if (auto first = run_together(**engine, std::span(&before, 1), [](int) {}); !first) return first.status();
    auto warm = run_together(**engine, std::span(&request, 1), [](int) {});
    if (!warm) return warm.status();
    const BenchReply &cold_reply = cold->replies.front(), &warm_reply = warm->replies.front();
    return Sample{cold_reply.first_token_seconds(), warm_reply.first_token_seconds(), warm_reply.end.path.prefix_rows,
                  cold_reply.ids == warm_reply.ids};
  }

 private:
  Result<std::unique_ptr<Engine>> fresh_engine() const {
    EngineOptions options;
    options.context = options_.prefix + options_.rest + options_.tokens;
    options_.model.apply(options);
    options.streams = 2;  // a pool that holds a kept prefix beside a stream
    return Engine::create(loaded_, options);
  }

  void append(Request& request, int rep, int which) const {
    const auto rest = arbitrary_ids(options_.rest, loaded_->card.vocab_size, 1000 * which + rep);
    request.prompt.insert(request.prompt.end(), rest.begin(), rest.end());
  }

  const PrefixOptions& options_;
  std::shared_ptr<LoadedModel> loaded_;
};

int report(const PrefixOptions& options, const LoadedModel& loaded, const std::vector<Sample>& samples) {
  std::vector<double> cold, warm;
  int same = 0, reused = options.prefix + options.rest;
  for (const Sample& sample : samples) {
    cold.push_back(sample.cold);
    warm.push_back(sample.warm);
    same += sample.same ? 1 : 0;
    reused = std::min(reused, sample.reused);
  }
  const int count = static_cast<int>(samples.size());
  if (options.json) {
    const nlohmann::ordered_json json = {{"bench", "prefix"},
                                         {"model", loaded.card.name},
                                         {"act", loaded.card.arithmetic.act},
                                         {"prompt_act", loaded.card.arithmetic.prompt_act},
                                         {"kv", options.model.kv},
                                         {"kv_dtype", loaded.card.arithmetic.kv_dtype},
                                         {"page", options.model.page},
                                         {"prefix_tokens", options.prefix},
                                         {"prompt_tokens", options.prefix + options.rest},
                                         {"cold_seconds", median(cold)},
                                         {"warm_seconds", median(warm)},
                                         {"cold_runs", cold},
                                         {"warm_runs", warm},
                                         {"rows_reused", reused},
                                         {"same", {{"equal", same}, {"of", count}}},
                                         {"equal", same == count}};
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print(
        "{}: first token of a prompt of {}, {} of them shared: cold {:.3f} s, warm {:.3f} s ({:.1f}x; {} rows "
        "reused; median of {}); {}/{} the same ids\n",
        loaded.card.name, options.prefix + options.rest, options.prefix, median(cold), median(warm),
        median(cold) / std::max(median(warm), 1e-9), reused, count, same, count);
  }
  return same == count ? 0 : 1;
}

int run(const PrefixOptions& options) {
  if (options.prefix < 1 || options.rest < 1 || options.tokens < 1 || options.reps < 1)
    return misuse("bench prefix needs at least one shared token, one other, one reply token and one repetition");
  if (auto page = options.model.page_positions(); !page) return misuse(page.message());
  auto loaded = options.model.load();
  if (!loaded) return fail(loaded.status());
  const std::shared_ptr<LoadedModel> model = std::move(*loaded);
  const int window = model->model->config().max_positions;
  if (std::int64_t{options.prefix} + options.rest + options.tokens > window)
    return fail(
        Status::error("{} tokens of prompt and {} of reply do not fit the model's {} positions; give a smaller "
                      "--prefix-tokens",
                      options.prefix + options.rest, options.tokens, window));
  const Prefix bench(options, model);
  ProgressBar bar("bench");
  std::vector<Sample> samples;
  for (int rep = -1; rep < options.reps; ++rep) {  // the first warms the machine up
    bar.show(rep + 1, options.reps + 1);
    auto sample = bench.measure(rep + 1);
    if (!sample) {
      bar.clear();
      return fail(sample.status());
    }
    if (rep >= 0) samples.push_back(*sample);
  }
  bar.clear();
  return report(options, *model, samples);
}

}  // namespace

void add_bench_prefix(CLI::App& bench, int& exit_status) {
  auto options = std::make_shared<PrefixOptions>();
  options->model.kv = "paged";
  auto* command = bench.add_subcommand(
      "prefix", "First-token time on a shared prefix: warm beside cold, and whether the ids differ");
  options->model.add_to(*command);
  command->add_option("--prefix-tokens", options->prefix, "Shared tokens")->capture_default_str();
  command->add_option("--rest-tokens", options->rest, "Tokens of the prompt behind them")->capture_default_str();
  command->add_option("--tokens", options->tokens, "Tokens of each reply, which are compared")->capture_default_str();
  command->add_option("--reps", options->reps, "Repetitions")->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace steadfast
