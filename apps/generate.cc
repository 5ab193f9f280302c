// generate: one reply to a prompt, to ids or to messages, streamed to standard output; --json prints one object at the
// end.
#include "check_receipt.h"
#include "engine/engine.h"
#include "prompt_options.h"
#include "server/json_parse.h"
#include "server/receipt.h"
#include "tokenizer_input.h"
#include "wait_reply.h"

namespace steadfast {
namespace {

struct GenerateOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::string prompt, ids, messages, check;
  std::optional<std::int64_t> now;
  std::vector<std::string> stop;
  int chunk = 0;
  bool raw = false, json = false, ignore_eos = false, no_drafts = false;
};

// *now is set where the template asked for the time: to --now, else to the clock's.
Result<std::vector<TokenId>> prompt_of(const GenerateOptions& options, const LoadedModel& loaded,
                                       std::optional<std::int64_t>& now) {
  if (!options.ids.empty()) return read_ids(options.ids, loaded.card.vocab_size);
  TemplateInput input;
  input.now = options.now ? *options.now : clock_seconds();
  if (!options.messages.empty()) {
    auto text = read_input(options.messages);
    if (!text) return text.status();
    auto messages = parse_json(*text);  // in the file's order of keys, which templates may print
    if (!messages) return Status::error("{}: {}", options.messages, messages.error().message);
    if (!messages->is_array()) return Status::error("{} must hold a JSON array of messages", options.messages);
    input.messages = std::move(*messages);
  } else {
    if (options.raw || !loaded.chat_template) {
      if (!loaded.tokenizer)
        return Status::error("the model has no tokenizer files; give the prompt as --ids FILE.json");
      return loaded.tokenizer->encode(options.prompt);
    }
    input.messages.push_back({{"role", "user"}, {"content", options.prompt}});
  }
  bool clock_read = false;
  auto ids = render_prompt(loaded, input, &clock_read);
  if (clock_read) now = input.now;
  return ids;
}

Json result_json(const std::optional<std::string>& text, const Request& request, const std::vector<TokenId>& ids,
                 const ReplyEnd& end, const ModelCard& card, std::optional<std::int64_t> now) {
  Json json;
  if (text)
    json["text"] = *text;
  else
    json["text"] = nullptr;
  json["ids"] = ids;
  json["prompt_tokens"] = end.timings.prompt_tokens;
  json["finish_reason"] = to_string(end.reason);
  json["timings"] = to_json(end.timings);
  json["receipt"] = to_json(make_receipt(request, card, now), ids, end.path);
  json["prompt_ids"] = request.prompt;
  return json;
}

int check(const GenerateOptions& given, bool has_prompt) {
  auto saved = SavedReply::read(given.check);
  if (!saved) return fail(saved.status());
  GenerateOptions options = given;
  options.model.act = saved->act();
  options.model.prompt_act = saved->prompt_act();
  options.model.kv_dtype = saved->kv_dtype();
  options.now = saved->now();
  auto loaded = options.model.load();
  if (!loaded) return fail(loaded.status());
  std::optional<std::vector<TokenId>> prompt = saved->prompt();
  if (!has_prompt && !prompt)
    return misuse(fmt::format("{} has no prompt_ids; give the prompt by --prompt, --ids or --messages", given.check));
  if (has_prompt) {
    std::optional<std::int64_t> now;
    auto ids = prompt_of(options, **loaded, now);
    if (!ids) return fail(ids.status());
    prompt = std::move(*ids);
  }
  EngineOptions engine_options;
  engine_options.piece = options.chunk;
  options.model.apply(engine_options);
  auto engine = Engine::create(std::move(*loaded), engine_options);
  if (!engine) return fail(engine.status());
  auto findings = check_reply(*saved, **engine, std::move(*prompt));
  if (!findings) return fail(findings.status());
  return print_findings(*findings, options.json);
}

int generate(const GenerateOptions& options) {
  auto loaded = options.model.load();
  if (!loaded) return fail(loaded.status());
  std::optional<std::int64_t> now;
  auto prompt = prompt_of(options, **loaded, now);
  if (!prompt) return fail(prompt.status());
  Request request;
  request.prompt = std::move(*prompt);
  request.stop = options.stop;
  request.ignore_eos = options.ignore_eos;
  if (auto status = options.sampling.apply(**loaded, request); !status) return misuse(status.message());
  const bool has_text = (*loaded)->tokenizer.has_value();

  EngineOptions engine_options;
  engine_options.piece = options.chunk;
  options.model.apply(engine_options);
  auto engine = Engine::create(std::move(*loaded), engine_options);
  if (!engine) return fail(engine.status());
  ProgressBar bar("prompt");
  (*engine)->on_progress([&bar](int done, int total) { done < total ? bar.show(done, total) : bar.clear(); });

  std::string text;
  std::vector<TokenId> ids;
  auto end = wait_reply(**engine, request, [&](const ReplyPiece& piece) {
    text += piece.text;
    ids.insert(ids.end(), piece.ids.begin(), piece.ids.end());
    if (options.json) return;
    fmt::print("{}", piece.text);
    std::fflush(stdout);
  });
  bar.clear();
  if (!end) return fail(end.status());
  if (options.json) {
    const auto shown = has_text ? std::optional(text) : std::nullopt;
    const Json json = result_json(shown, request, ids, *end, (*engine)->card(), now);
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else if (has_text) {
    fmt::print("\n");
  } else {
    fmt::print("{}\n", nlohmann::json(ids).dump());
  }
  return 0;
}

int run(const GenerateOptions& options, bool has_prompt) {
  const int given = static_cast<int>(has_prompt) + static_cast<int>(!options.ids.empty()) +
                    static_cast<int>(!options.messages.empty());
  const bool checks = !options.check.empty();
  if (given > 1 || (given == 0 && !checks))
    return misuse("generate needs one of --prompt TEXT, --ids FILE.json and --messages FILE.json");
  if (has_prompt && options.prompt.empty()) return misuse("the prompt is empty; give at least one character");
  if (options.chunk < 0) return misuse("--chunk must be at least 1");
  return checks ? check(options, given == 1) : generate(options);
}

}  // namespace

void add_generate(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<GenerateOptions>();
  auto* command = app.add_subcommand("generate", "One reply to a prompt");
  options->model.add_to(*command);
  auto* prompt =
      command->add_option("--prompt", options->prompt, "Text of the user's message (or the whole prompt, with --raw)");
  command->add_option("--ids", options->ids, "JSON array of token ids: the whole prompt");
  command->add_option("--messages", options->messages, "JSON array of chat messages");
  command->add_flag("--raw", options->raw, "No chat template: the prompt is what the model reads");
  options->sampling.add_to(*command);
  command->add_option("--stop", options->stop, "End the reply before this text (may be given several times)");
  command->add_option("--chunk", options->chunk, "The most prompt rows a round; 0: as many as fit");
  command->add_option("--now", options->now,
                      "Seconds since 1970, for templates that print the date (default: the clock)");
  command->add_option("--check-receipt", options->check,
                      "Make a saved reply again by its receipt and say whether it is equal: a result of --json, or a "
                      "reply of the API beside its prompt");
  command->add_flag("--ignore-eos", options->ignore_eos, "Do not stop at the model's end tokens");
  command->add_flag("--no-drafts", options->no_drafts, "Plain replies (this build drafts none)");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options, prompt, &exit_status] { exit_status = run(*options, prompt->count() > 0); });
}

}  // namespace steadfast
