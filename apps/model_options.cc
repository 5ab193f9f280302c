// Shared options of the commands.
#include "model_options.h"

#include <unistd.h>

#include "base/config.h"
#include "engine/devices.h"
#include "model/config.h"

namespace steadfast {

void ModelOptions::add_to(CLI::App& command) {
  command
      .add_option("MODEL", model, "Folder in Hugging Face or MLX form, .gguf file, or a name that `pull` has stored")
      ->required();
  command.add_option("--device", device, "cpu, cuda or cuda:NUMBER (default: a GPU if one is there)");
  command.add_option("--threads", threads, "Threads; 0: one for each core")->capture_default_str();
  command.add_option("--act", act,
                     "Activations of quantised linears: int8, bf16 or f32 (default: int8 on the CPU, bf16 on CUDA)");
  command.add_option("--prompt-act", prompt_act,
                     "The same for the rows of prompts alone: int8, bf16 or f32 (default: as --act)");
  command.add_flag("--no-graphs", no_graphs, "CUDA: plain launches instead of graphs; the bits are the same");
  command.add_option("--kv", kv, "Cache: whole (a window a stream) or paged (pages of one pool, prefixes shared)")
      ->capture_default_str();
  command.add_option("--page", page, "Positions of a page, a power of two from 16 to 1024")->capture_default_str();
  command.add_option("--kv-dtype", kv_dtype, "Cache type: bf16, fp8 or f32 (default: f32 with --act f32, else bf16)");
}

Result<int> ModelOptions::page_positions() const {
  if (kv == "whole") return 0;
  if (kv != "paged") return Status::error("--kv {}: use whole or paged", kv);
  if (auto status = PagePool::check_page(page); !status) return status;
  return page;
}

Result<LoadOptions> ModelOptions::load_options() const {
  LoadOptions options;
  if (auto positions = page_positions(); !positions) return positions.status();
  options.device = device.empty() ? config().device.value_or(default_device()) : device;
  options.graphs = !no_graphs;
  options.timed = timed;
  options.threads = threads;
  options.isa = config().isa.value_or("");
  const char* usual_act = options.device == "cpu" ? "int8" : "bf16";
  auto parsed_act = parse_act(act.empty() ? usual_act : act);
  if (!parsed_act) return parsed_act.status();
  options.act = *parsed_act;
  if (!prompt_act.empty()) {
    auto parsed = parse_act(prompt_act, "--prompt-act");
    if (!parsed) return parsed.status();
    options.prompt_act = *parsed;
  }
  if (kv_dtype.empty()) return options;
  auto parsed = parse_kv_dtype(kv_dtype);
  if (!parsed) return parsed.status();
  options.kv_dtype = *parsed;
  return options;
}

Result<std::unique_ptr<LoadedModel>> ModelOptions::load() const {
  auto path = resolve_model(model);
  if (!path) return path.status();
  auto options = load_options();
  if (!options) return options.status();
  ProgressBar bar("loading");
  options->progress = [&bar](int done, int total) { bar.show(done, total); };
  auto loaded = load_model(*path, *options);
  bar.clear();
  return loaded;
}

Result<std::vector<TokenId>> read_ids(const std::string& path, int vocab_size) {
  auto json = read_json_file(path);
  if (!json) return json.status();
  if (!json->is_array()) return Status::error("{} must hold a JSON array of token ids, as [1, 2, 3]", path);
  std::vector<TokenId> ids;
  ids.reserve(json->size());
  for (const auto& value : *json) {
    if (!value.is_number_integer()) return Status::error("{}: entry {} is not a whole number", path, ids.size());
    const auto id = value.get<double>();
    if (id < 0 || id >= vocab_size)
      return Status::error("{}: id {} is outside the vocabulary of {}", path, value.dump(), vocab_size);
    ids.push_back(value.get<TokenId>());
  }
  return ids;
}

ProgressBar::ProgressBar(std::string label) : label_(std::move(label)), terminal_(::isatty(STDERR_FILENO) != 0) {}

void ProgressBar::show(int done, int total) {
  if (!terminal_ || total <= 0) return;
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(std::int64_t{kWidth} * done / total);
  fmt::print(stderr, "\r{} [{:#<{}}{: <{}}] {}/{}", label_, "", filled, "", kWidth - filled, done, total);
  std::fflush(stderr);
  shown_ = true;
}

void ProgressBar::clear() {
  if (shown_) fmt::print(stderr, "\r{: <72}\r", "");
  std::fflush(stderr);
  shown_ = false;
}

nlohmann::ordered_json to_json(const ReplyTimings& t) {
  const auto rate = [](int tokens, double seconds) { return seconds > 0 ? tokens / seconds : 0.0; };
  return {{"queue_seconds", t.queue_seconds},
          {"prompt_seconds", t.prompt_seconds},
          {"reply_seconds", t.reply_seconds},
          {"prompt_tokens", t.prompt_tokens},
          {"reply_tokens", t.reply_tokens},
          {"prompt_tokens_per_second", rate(t.prompt_tokens, t.prompt_seconds)},
          {"reply_tokens_per_second", rate(t.reply_tokens - 1, t.reply_seconds)}};
}

}  // namespace steadfast
