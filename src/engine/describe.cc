// The object's keys are in the order in which `info` prints them.
#include "engine/describe.h"

#include <map>

#include "engine/devices.h"

namespace steadfast {
namespace {

// "layers.3.mlp.up_proj" to "mlp.up_proj".
std::string kind_of(const std::string& name) {
  return name.starts_with("layers.") ? name.substr(name.find('.', 7) + 1) : name;
}

nlohmann::ordered_json formats_of(const ModelWeights& weights) {
  std::map<std::string, std::pair<int, std::size_t>> formats;
  for (const auto& [name, weight] : weights.modules()) {
    auto& [count, bytes] = formats[weight->format()];
    ++count;
    bytes += weight->bytes();
  }
  nlohmann::ordered_json json;
  for (const auto& [format, entry] : formats) json[format] = {{"modules", entry.first}, {"bytes", entry.second}};
  return json;
}

nlohmann::ordered_json modules_of(const ModelWeights& weights) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [name, weight] : weights.modules()) {
    auto& count = json[kind_of(name)][weight->format()];
    count = count.is_null() ? 1 : count.get<int>() + 1;
  }
  return json;
}

}  // namespace

nlohmann::ordered_json describe(const LoadedModel& loaded, int context) {
  const ModelConfig& config = loaded.model->config();
  const CacheShape cache = loaded.model->cache_shape(loaded.kv_dtype);
  nlohmann::ordered_json json;
  json["name"] = loaded.card.name;
  json["family"] = config.family;
  json["digest"] = loaded.card.digest;
  json["layers"] = config.layers;
  json["attention_layers"] = cache.layers;
  json["recurrent_layers"] = cache.delta_layers;
  json["hidden"] = config.hidden;
  json["intermediate"] = config.intermediate;
  json["heads"] = config.heads;
  json["kv_heads"] = config.kv_heads;
  json["head_dim"] = config.head_dim;
  if (cache.delta_layers > 0) {
    const LinearAttentionConfig& d = config.linear;
    json["recurrence"] = {{"key_heads", d.key_heads},
                          {"value_heads", d.value_heads},
                          {"key_dim", d.key_dim},
                          {"value_dim", d.value_dim},
                          {"taps", d.taps}};
  }
  json["vocab"] = config.vocab;
  json["positions"] = config.max_positions;
  json["tied_head"] = config.tied;
  json["end_ids"] = config.eos;
  json["weights_bytes"] = loaded.model->weights().bytes();
  json["formats"] = formats_of(loaded.model->weights());
  json["modules"] = modules_of(loaded.model->weights());
  json["kv_dtype"] = info(loaded.kv_dtype).name;
  json["kv_bytes_per_position"] = cache.bytes_per_position();
  json["state_bytes"] = cache.state_bytes();
  json["context"] = context;
  json["stream_bytes"] = cache.stream_bytes(context);
  json["backend"] = loaded.backend->describe();
  json["act"] = to_string(loaded.backend->act());
  json["prompt_act"] = to_string(loaded.backend->prompt_act());
  json["gpu"] = gpu_note();
  auto kernels = nlohmann::ordered_json::object();
  for (const auto& [op, kernel] : loaded.backend->kernels(shapes_of(config, loaded.kv_dtype))) kernels[op] = kernel;
  json["kernels"] = kernels;
  json["tokenizer"] = loaded.tokenizer.has_value();
  json["chat_template"] = loaded.chat_template.has_value();
  json["notes"] = loaded.notes;
  return json;
}

}  // namespace steadfast
