// info: what a model is and what this program does with it: configuration, formats by module, memory, kernels.
#include <map>

#include "engine/engine.h"
#include "model_options.h"

namespace steadfast {
namespace {

struct InfoOptions {
  ModelOptions model;
  int context = 0;
  bool json = false;
};

nlohmann::ordered_json describe(const LoadedModel& loaded, int context) {
  const ModelConfig& config = loaded.model->config();
  const CacheShape cache = loaded.model->cache_shape(loaded.kv_dtype);
  std::map<std::string, std::pair<int, std::size_t>> formats;
  for (const auto& [name, weight] : loaded.model->weights().modules()) {
    auto& [count, bytes] = formats[weight->format()];
    ++count;
    bytes += weight->bytes();
  }
  nlohmann::ordered_json json;
  json["name"] = loaded.card.name;
  json["family"] = config.family;
  json["digest"] = loaded.card.digest;
  json["layers"] = config.layers;
  json["hidden"] = config.hidden;
  json["intermediate"] = config.intermediate;
  json["heads"] = config.heads;
  json["kv_heads"] = config.kv_heads;
  json["head_dim"] = config.head_dim;
  json["vocab"] = config.vocab;
  json["positions"] = config.max_positions;
  json["tied_head"] = config.tied;
  json["end_ids"] = config.eos;
  json["weights_bytes"] = loaded.model->weights().bytes();
  for (const auto& [format, entry] : formats)
    json["formats"][format] = {{"modules", entry.first}, {"bytes", entry.second}};
  json["kv_dtype"] = info(loaded.kv_dtype).name;
  json["kv_bytes_per_position"] = cache.bytes_per_position();
  json["context"] = context;
  json["stream_bytes"] = cache.bytes_per_position() * static_cast<std::size_t>(context);
  json["backend"] = loaded.backend->describe();
  json["gpu"] = "no GPU backend in this build";
  json["tokenizer"] = loaded.tokenizer.has_value();
  json["chat_template"] = loaded.chat_template.has_value();
  json["notes"] = loaded.notes;
  return json;
}

std::string mib(std::size_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

void print(const nlohmann::ordered_json& j) {
  const auto line = [](const char* label, const std::string& value) { fmt::print("{:<12} {}\n", label, value); };
  const auto number = [&j](const char* key) { return j[key].get<long long>(); };
  line("model", fmt::format("{} ({})", j["name"].get<std::string>(), j["family"].get<std::string>()));
  line("digest", j["digest"].get<std::string>());
  line("layers", fmt::format("{}, hidden {}, MLP {}", number("layers"), number("hidden"), number("intermediate")));
  line("attention", fmt::format("{} heads over {} of {}", number("heads"), number("kv_heads"), number("head_dim")));
  line("vocabulary", fmt::format("{}, head {}", number("vocab"),
                                 j["tied_head"].get<bool>() ? "tied to the embeddings" : "of its own"));
  line("positions", fmt::format("{}", number("positions")));
  line("weights", mib(j["weights_bytes"].get<std::size_t>()));
  for (const auto& [format, entry] : j["formats"].items())
    line("", fmt::format("{:>4} modules, {:>10}: {}", entry["modules"].get<int>(),
                         mib(entry["bytes"].get<std::size_t>()), format));
  line("cache",
       fmt::format("{}, {} bytes a position; a stream of {} positions: {}", j["kv_dtype"].get<std::string>(),
                   number("kv_bytes_per_position"), number("context"), mib(j["stream_bytes"].get<std::size_t>())));
  line("runs on", j["backend"].get<std::string>());
  line("gpu", j["gpu"].get<std::string>());
  line("text", fmt::format("tokenizer: {}, chat template: {}", j["tokenizer"].get<bool>() ? "yes" : "no",
                           j["chat_template"].get<bool>() ? "yes" : "no"));
  for (const auto& note : j["notes"]) line("note", note.get<std::string>());
}

int run(const InfoOptions& options) {
  auto loaded = options.model.load();
  if (!loaded) return fail(loaded.status());
  const int most = (*loaded)->model->config().max_positions;
  if (options.context < 0 || options.context > most)
    return misuse(fmt::format("--context {}: use 1 to {}", options.context, most));
  const auto json = describe(**loaded, options.context > 0 ? options.context : most);
  if (options.json)
    fmt::print("{}\n", json.dump());
  else
    print(json);
  return 0;
}

}  // namespace

void add_info(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<InfoOptions>();
  auto* command = app.add_subcommand("info", "What a model is, and what runs on which kernel");
  options->model.add_to(*command);
  command->add_option("--context", options->context,
                      "Positions of a stream, for the memory plan (default: the model's)");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace steadfast
