// bench concurrent: the same prompts all at once, one after the other through the same engine, and each alone in a
// fresh one. Prints the speed of each number of streams and, as the figure that matters, how many gave the same ids.
#include <algorithm>

#include "bench_command.h"
#include "concurrent.h"

namespace steadfast {
namespace {

double mib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

nlohmann::ordered_json level_json(const Level& level) {
  nlohmann::ordered_json json = {{"kv", level.kv},
                                 {"temperature", std::stod(fmt::format("{}", level.temperature))},
                                 {"streams", level.streams},
                                 {"requests", level.requests},
                                 {"context", level.context},
                                 {"idle_mib", mib(level.idle.device)},
                                 {"memory", level.idle.plan.json()},
                                 {"tokens_per_second", median(level.rates)},
                                 {"tokens_per_second_of_a_stream", median(level.stream_rates)},
                                 {"first_token_seconds", median(level.first_tokens)},
                                 {"longest_first_token_seconds", median(level.longest_first_tokens)},
                                 {"runs", level.rates}};
  for (const auto& [name, same] : level.comparisons()) {
    json[name] = {{"equal", same->equal}, {"of", level.requests}};
    if (!same->first.empty()) json[name]["first_difference"] = same->first;
  }
  return json;
}

void print_json(const ConcurrentOptions& options, const Concurrent& bench) {
  const ModelCard& card = bench.loaded().card;
  nlohmann::ordered_json json = {{"bench", "concurrent"},
                                 {"model", card.name},
                                 {"target", card.arithmetic.target},
                                 {"act", card.arithmetic.act},
                                 {"prompt_act", card.arithmetic.prompt_act},
                                 {"kv_dtype", card.arithmetic.kv_dtype},
                                 {"backend", bench.loaded().backend->describe()},
                                 {"tokens", options.tokens},
                                 {"reps", options.reps},
                                 {"context", bench.context()},
                                 {"page", options.model.page}};
  for (const Ids& prompt : bench.prompts()) json["prompt_tokens"].push_back(prompt.size());
  for (const Level& level : bench.references()) json["alone"].push_back(level_json(level));
  for (const Level& level : bench.levels()) {
    json["levels"].push_back(level_json(level));
    if (level.whole.equal >= 0) json["levels"].back()["paged_over_whole"] = level.over_whole;
  }
  json["equal"] = bench.all_equal();
  fmt::print("{}\n", json.dump());
}

void print_heading(const ConcurrentOptions& options, const Concurrent& bench) {
  const ModelCard& card = bench.loaded().card;
  const auto [shortest, longest] = std::minmax_element(bench.prompts().begin(), bench.prompts().end(),
                                                       [](const Ids& a, const Ids& b) { return a.size() < b.size(); });
  fmt::print("{}: {}, {}, keys and values in {}; prompts of {} to {} tokens, replies of {}, median of {}\n", card.name,
             bench.loaded().backend->describe(), card.arithmetic.act, card.arithmetic.kv_dtype, shortest->size(),
             longest->size(), options.tokens, options.reps);
  fmt::print("{:<6} {:>4} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>22}  {}\n", "kv", "T", "streams", "context",
             "idle MiB", "plan MiB", "tokens/s", "of one", "first token, longest", "same ids");
}

// A line as soon as it is measured: a run of many levels takes its time.
void print_line(const Level& level) {
  std::string same = level.reference ? fmt::format("alone, {} replies", level.requests) : "";
  for (const auto& [name, counts] : level.comparisons())
    same += fmt::format("{}{}/{} {}", same.empty() ? "" : ", ", counts->equal, level.requests, name);
  if (level.whole.equal >= 0) same += fmt::format("; {:.3f}x whole", level.over_whole);
  fmt::print("{:<6} {:>4} {:>8} {:>8} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>10.3f} s {:>8.3f} s  {}\n", level.kv,
             level.temperature, level.streams, level.context, mib(level.idle.device), mib(level.idle.plan.total()),
             median(level.rates), median(level.stream_rates), median(level.first_tokens),
             median(level.longest_first_tokens), same);
  std::fflush(stdout);
}

void tell_differences(const Concurrent& bench) {
  for (const Level& level : bench.levels())
    for (const auto& [name, same] : level.comparisons())
      if (!same->first.empty())
        fmt::print(stderr, "steadfast: {} streams at temperature {} ({}) differ from {}: {}\n", level.streams,
                   level.temperature, level.kv, name, same->first);
}

std::string complaint(const ConcurrentOptions& options) {
  if (options.requests < 0 || options.requests > 4096)
    return fmt::format("--requests {}: use 1 to 4096, or 0 for as many as streams", options.requests);
  for (const int length : options.prompt_tokens)
    if (length < 1) return fmt::format("--prompt-tokens {}: a prompt has at least one token", length);
  if (!options.prompts.empty() && !options.prompt_tokens.empty()) return "give --prompts or --prompt-tokens, not both";
  for (const float temperature : options.temperatures)
    if (!(temperature >= 0 && temperature <= 100)) return fmt::format("--temperatures {}: use 0 to 100", temperature);
  if (options.tokens < 2) return "--tokens must be at least 2";
  if (options.reps < 1) return "--reps must be at least 1";
  if (options.context < 0) return "--context must be at least 1";
  return "";
}

// Positions of the smallest stream that will run.
int smallest_window(const ConcurrentOptions& options, const LoadedModel& loaded) {
  int smallest = loaded.model->config().max_positions;
  for (const LevelSpec& level : options.levels)
    for (const int context : {level.context, level.context == 0 ? options.context : 0})
      if (context > 0) smallest = std::min(smallest, context);
  return smallest;
}

Result<std::vector<Ids>> given_prompts(const ConcurrentOptions& options, const LoadedModel& loaded) {
  return options.prompts.empty() ? prompts_of_lengths(loaded, options.prompt_tokens)
                                 : read_prompts(options.prompts, loaded);
}

Result<std::vector<Ids>> prompts_of(const ConcurrentOptions& options, const LoadedModel& loaded) {
  const int count = options.most_requests(), window = smallest_window(options, loaded);
  const int longest = window - options.tokens;
  if (longest < 1)
    return Status::error("replies of {} tokens leave no room for prompts in a window of {}; give a smaller --tokens",
                         options.tokens, window);
  if (options.prompts.empty() && options.prompt_tokens.empty()) return varied_prompts(loaded, count, longest);
  auto prompts = given_prompts(options, loaded);
  if (!prompts) return prompts;
  const std::string where = options.prompts.empty() ? "--prompt-tokens" : options.prompts;
  if (static_cast<int>(prompts->size()) < count)
    return Status::error("{} has {} prompts; {} requests need as many", where, prompts->size(), count);
  prompts->resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < prompts->size(); ++i) {
    if (static_cast<int>((*prompts)[i].size()) > longest)
      return Status::error("{}: prompt {} has {} tokens; with {} more for the reply a window of {} is too small", where,
                           i, (*prompts)[i].size(), options.tokens, window);
  }
  return prompts;
}

int run(const ConcurrentOptions& given, const std::vector<std::string>& levels) {
  ConcurrentOptions options = given;
  for (const std::string& word : levels) {
    auto level = parse_level(word);
    if (!level) return misuse(level.message());
    options.levels.push_back(std::move(*level));
  }
  if (const std::string sentence = complaint(options); !sentence.empty()) return misuse(sentence);
  std::vector<std::string> layouts = {options.model.kv};
  if (options.model.kv == "both") {
    layouts = {"whole", "paged"};
    options.model.kv = "paged";  // its page is checked
  }
  if (auto page = options.model.page_positions(); !page) return misuse(page.message());
  auto loaded = options.model.load();
  if (!loaded) return fail(loaded.status());
  auto prompts = prompts_of(options, **loaded);
  if (!prompts) return fail(prompts.status());
  Concurrent bench(options, std::move(*loaded), std::move(*prompts), std::move(layouts));
  if (!options.json) {
    print_heading(options, bench);
    bench.on_level(print_line);
  }
  if (auto status = bench.run(); !status) return fail(status);
  if (options.json) print_json(options, bench);
  tell_differences(bench);
  return bench.all_equal() ? 0 : 1;
}

}  // namespace

void add_bench_concurrent(CLI::App& bench, int& exit_status) {
  auto options = std::make_shared<ConcurrentOptions>();
  auto levels = std::make_shared<std::vector<std::string>>(std::initializer_list<std::string>{"1", "4", "8"});
  auto* command = bench.add_subcommand(
      "concurrent",
      "The same prompts at once, one after the other, and alone: speed, and whether the ids are the same");
  options->model.add_to(*command);
  command->get_option("--kv")->description("whole, paged, or both by turns");
  command
      ->add_option("--levels", *levels,
                   "Numbers of streams, as 1,4,8; with a context and a layout of their own, as 8@65536:paged")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--requests", options->requests, "Requests sent at once; 0: as many as streams")
      ->capture_default_str();
  command->add_option("--tokens", options->tokens, "Tokens of each reply")->capture_default_str();
  command->add_option("--reps", options->reps, "Repetitions, each in a fresh engine")->capture_default_str();
  command->add_option("--temperatures", options->temperatures, "As 0,0.8")->delimiter(',')->capture_default_str();
  command->add_option(
      "--prompts", options->prompts,
      "JSON array: each entry a message, a list of messages or a list of token ids (default: built in)");
  command->add_option("--prompt-tokens", options->prompt_tokens, "Prompts of these lengths, as 24,61,4616")
      ->delimiter(',');
  command->add_option("--context", options->context, "Positions of a stream; 0: what prompt and reply need")
      ->capture_default_str();
  command->add_flag("--alone", options->alone, "Compare with each reply alone in a fresh engine of one stream");
  command->add_flag("--serial", options->serial, "Compare with the replies one after the other in the same engine");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options, levels, &exit_status] { exit_status = run(*options, *levels); });
}

}  // namespace steadfast
