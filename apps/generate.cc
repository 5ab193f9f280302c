// generate: one reply to a prompt, to ids or to messages, streamed to standard output; --json prints one object at the
// end.
#include "engine/engine.h"
#include "model/config.h"
#include "prompt_options.h"
#include "wait_reply.h"

namespace steadfast {
namespace {

struct GenerateOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::string prompt, ids, messages;
  std::vector<std::string> stop;
  int chunk = 0;
  bool raw = false, json = false, ignore_eos = false, no_drafts = false;
};

Result<std::vector<TokenId>> prompt_of(const GenerateOptions& options, const LoadedModel& loaded) {
  if (!options.ids.empty()) return read_ids(options.ids, loaded.card.vocab_size);
  TemplateInput input;
  if (!options.messages.empty()) {
    auto messages = read_json_file(options.messages);
    if (!messages) return messages.status();
    if (!messages->is_array()) return Status::error("{} must hold a JSON array of messages", options.messages);
    input.messages = Json::parse(messages->dump());
  } else {
    if (options.raw || !loaded.chat_template) {
      if (!loaded.tokenizer)
        return Status::error("the model has no tokenizer files; give the prompt as --ids FILE.json");
      return loaded.tokenizer->encode(options.prompt);
    }
    input.messages.push_back({{"role", "user"}, {"content", options.prompt}});
  }
  return render_prompt(loaded, input);
}

int run(const GenerateOptions& options, bool has_prompt) {
  const int given = static_cast<int>(has_prompt) + static_cast<int>(!options.ids.empty()) +
                    static_cast<int>(!options.messages.empty());
  if (given != 1) return misuse("generate needs one of --prompt TEXT, --ids FILE.json and --messages FILE.json");
  if (has_prompt && options.prompt.empty()) return misuse("the prompt is empty; give at least one character");
  if (options.chunk < 0) return misuse("--chunk must be at least 1");
  auto loaded = options.model.load();
  if (!loaded) return fail(loaded.status());
  auto prompt = prompt_of(options, **loaded);
  if (!prompt) return fail(prompt.status());
  Request request;
  request.prompt = std::move(*prompt);
  request.stop = options.stop;
  request.ignore_eos = options.ignore_eos;
  if (auto status = options.sampling.apply(**loaded, request); !status) return misuse(status.message());
  const SamplingParams used = request.sampling;
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
  auto end = wait_reply(**engine, std::move(request), [&](const ReplyPiece& piece) {
    text += piece.text;
    ids.insert(ids.end(), piece.ids.begin(), piece.ids.end());
    if (options.json) return;
    fmt::print("{}", piece.text);
    std::fflush(stdout);
  });
  bar.clear();
  if (!end) return fail(end.status());
  if (!options.json) {
    if (has_text)
      fmt::print("\n");
    else
      fmt::print("{}\n", nlohmann::json(ids).dump());
    return 0;
  }
  nlohmann::ordered_json json;
  if (has_text)
    json["text"] = text;
  else
    json["text"] = nullptr;
  json["ids"] = ids;
  json["prompt_tokens"] = end->timings.prompt_tokens;
  json["finish_reason"] = to_string(end->reason);
  json["timings"] = to_json(end->timings);
  json["receipt"] = {{"model", (*engine)->card().digest},
                     {"arithmetic",
                      {{"target", "cpu"},
                       {"act", options.model.act},
                       {"kv_dtype", info((*engine)->loaded().kv_dtype).name},
                       {"version", 1}}},
                     {"seed", used.seed},
                     {"sampling",
                      {{"temperature", used.temperature},
                       {"top_k", used.top_k},
                       {"top_p", used.top_p},
                       {"min_p", used.min_p},
                       {"repetition_penalty", used.repetition_penalty}}}};
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return 0;
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
  command->add_flag("--ignore-eos", options->ignore_eos, "Do not stop at the model's end tokens");
  command->add_flag("--no-drafts", options->no_drafts, "Plain replies (this build drafts none)");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options, prompt, &exit_status] { exit_status = run(*options, prompt->count() > 0); });
}

}  // namespace steadfast
