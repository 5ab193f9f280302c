// info: what a model is and what this program does with it: configuration, formats by module, memory, kernels.
#include "engine/describe.h"
#include "model_options.h"

namespace steadfast {
namespace {

struct InfoOptions {
  ModelOptions model;
  int context = 0, parallel = 4;
  bool json = false;
};

std::string mib(std::size_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

void line(const char* label, const std::string& value) { fmt::print("{:<12} {}\n", label, value); }

// One line a kind of module: how many matrices it has in each format.
void print_modules(const nlohmann::ordered_json& modules) {
  const char* label = "modules";
  for (const auto& [kind, formats] : modules.items()) {
    std::string list;
    for (const auto& [format, count] : formats.items())
      list += fmt::format("{}{} x {}", list.empty() ? "" : "; ", count.get<int>(), format);
    line(label, fmt::format("{:<26} {}", kind, list));
    label = "";
  }
}

void print(const nlohmann::ordered_json& j) {
  const auto number = [&j](const char* key) { return j[key].get<long long>(); };
  line("model", fmt::format("{} ({})", j["name"].get<std::string>(), j["family"].get<std::string>()));
  line("digest", j["digest"].get<std::string>());
  line("layers", fmt::format("{}, hidden {}, MLP {}", number("layers"), number("hidden"), number("intermediate")));
  if (number("recurrent_layers") > 0) {
    const auto& r = j["recurrence"];
    line("", fmt::format("{} of attention, {} recurrent (Gated DeltaNet)", number("attention_layers"),
                         number("recurrent_layers")));
    line("recurrence", fmt::format("{} value heads over {} key heads, states of {} by {}, {} taps",
                                   r["value_heads"].get<int>(), r["key_heads"].get<int>(), r["key_dim"].get<int>(),
                                   r["value_dim"].get<int>(), r["taps"].get<int>()));
  }
  line("attention", fmt::format("{} heads over {} of {}", number("heads"), number("kv_heads"), number("head_dim")));
  line("vocabulary", fmt::format("{}, head {}", number("vocab"),
                                 j["tied_head"].get<bool>() ? "tied to the embeddings" : "of its own"));
  line("positions", fmt::format("{}", number("positions")));
  line("weights", mib(j["weights_bytes"].get<std::size_t>()));
  for (const auto& [format, entry] : j["formats"].items())
    line("", fmt::format("{:>4} modules, {:>10}: {}", entry["modules"].get<int>(),
                         mib(entry["bytes"].get<std::size_t>()), format));
  print_modules(j["modules"]);
  line("cache",
       fmt::format("{}, {} bytes a position", j["kv_dtype"].get<std::string>(), number("kv_bytes_per_position")));
  if (number("state_bytes") > 0)
    line("state", fmt::format("{} a stream, at any length", mib(j["state_bytes"].get<std::size_t>())));
  line("stream",
       fmt::format("{} in all at {} positions", mib(j["stream_bytes"].get<std::size_t>()), number("context")));
  line("plan", j["memory"].contains("sentence") ? j["memory"]["sentence"].get<std::string>()
                                                : "refused: " + j["memory"]["refused"].get<std::string>());
  line("runs on", j["backend"].get<std::string>());
  const char* label = "kernels";
  for (const auto& [op, kernel] : j["kernels"].items()) {
    line(label, fmt::format("{:<26} {}", op, kernel.get<std::string>()));
    label = "";
  }
  line("gpu", j["gpu"].get<std::string>());
  line("text", fmt::format("tokenizer: {}, chat template: {}", j["tokenizer"].get<bool>() ? "yes" : "no",
                           j["chat_template"].get<bool>() ? "yes" : "no"));
  for (const auto& note : j["notes"]) line("note", note.get<std::string>());
}

// What `serve` would plan with these options, or why it would refuse.
nlohmann::ordered_json memory_of(const LoadedModel& loaded, const InfoOptions& options) {
  EngineOptions engine;
  engine.streams = options.parallel;
  engine.context = options.context;
  options.model.apply(engine);
  const auto plan = plan_memory(*loaded.model, loaded.kv_dtype, engine);
  if (!plan) return {{"refused", plan.message()}};
  auto json = plan->json();
  json["sentence"] = plan->sentence();
  return json;
}

int run(const InfoOptions& options) {
  auto loaded = options.model.load();
  if (!loaded) return fail(loaded.status());
  const int most = (*loaded)->model->config().max_positions;
  if (options.context < 0 || options.context > most)
    return misuse(fmt::format("--context {}: use 1 to {}", options.context, most));
  auto json = describe(**loaded, options.context > 0 ? options.context : most);
  json["memory"] = memory_of(**loaded, options);
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
  command->add_option("--parallel", options->parallel, "Streams computed at once, for the memory plan")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace steadfast
