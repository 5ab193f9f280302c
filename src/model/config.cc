// config.json to ModelConfig: what all families share; each family then adds its differences (families/*.cc).
#include "model/config.h"

#include <fstream>
#include <set>
#include <sstream>

#include "model/families/family.h"
#include "model/fields.h"
#include "model/rope.h"

namespace steadfast {
namespace {

constexpr int kMaxSide = 1 << 20, kMaxPositions = 1 << 24, kMaxDepth = 64;

void read_ids(const nlohmann::json& value, Fields& fields, const char* key, std::vector<TokenId>& out) {
  const auto add = [&](const nlohmann::json& id) {
    if (!id.is_number_integer() || id.get<double>() < 0 || id.get<double>() > (1 << 30))
      return fields.note(fmt::format("\"{}\" must hold token ids", key));
    out.push_back(id.get<TokenId>());
  };
  if (value.is_array()) {
    for (const auto& id : value) add(id);
  } else if (!value.is_null()) {
    add(value);
  }
}

const nlohmann::json& rope_fields(const nlohmann::json& config) {
  static const nlohmann::json kNone;
  for (const char* key : {"rope_parameters", "rope_scaling"})
    if (config.contains(key) && config[key].is_object()) return config[key];
  return kNone;
}

// MLX's object: "quantization", else "quantization_config", which mlx-lm writes as its copy and other programs as their
// own.
void read_quantization(const nlohmann::json& outer, const nlohmann::json& text, Fields& fields, nlohmann::json& out) {
  for (const nlohmann::json* json : {&outer, &text})
    for (const char* key : {"quantization", "quantization_config"}) {
      if (!json->contains(key) || (*json)[key].is_null()) continue;
      out = (*json)[key];
      if (!out.is_object()) return fields.note(fmt::format("\"{}\" must be an object", key));
      if (out.contains("quant_method"))
        fields.note(
            fmt::format("\"{}\" of method {} is not supported; MLX's affine mode and GGUF's Q4_0, Q4_1 and Q8_0 are",
                        key, out["quant_method"].dump()));
      return;
    }
}

Status check_shape(const ModelConfig& config) {
  if (config.heads % config.kv_heads != 0)
    return Status::error("config.json: {} heads cannot share {} key-value heads evenly", config.heads, config.kv_heads);
  if (config.head_dim % 16 != 0 || config.head_dim > 512)
    return Status::error("config.json: heads of {} are not supported; multiples of 16 up to 512 are", config.head_dim);
  if (config.rope.dims % 2 != 0 || config.rope.dims > config.head_dim)
    return Status::error("config.json: {} rotary dims do not fit heads of {}", config.rope.dims, config.head_dim);
  return Status::ok();
}

}  // namespace

Result<nlohmann::json> read_json_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::error("cannot read {}; is the path right?", path.string());
  std::stringstream text;
  text << file.rdbuf();
  bool deep = false;
  const auto limit = [&deep](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    deep = deep || depth > kMaxDepth;
    return !deep;
  };
  auto json = nlohmann::json::parse(text.str(), limit, /*allow_exceptions=*/false);
  if (deep) return Status::error("{} is nested deeper than {} levels", path.string(), kMaxDepth);
  if (json.is_discarded()) return Status::error("{} is not valid JSON; is the download complete?", path.string());
  return json;
}

Result<ModelConfig> config_from_json(const nlohmann::json& outer) {
  if (!outer.is_object()) return Status::error("config.json is not an object");
  const bool nested = outer.contains("text_config") && !outer["text_config"].is_null();
  if (nested && !outer["text_config"].is_object())
    return Status::error("config.json: \"text_config\" must be an object");
  const nlohmann::json& json = nested ? outer["text_config"] : outer;
  Fields fields(json, "config.json");
  const Family* family = find_family(fields.text("model_type", ""));
  if (family == nullptr)
    return Status::error("config.json: model_type \"{}\" is not supported; {} are",
                         fields.text("model_type", "(missing)"), family_names());

  ModelConfig config;
  config.family = family->name;
  config.vocab = fields.required("vocab_size", 1, 1 << 24);
  config.hidden = fields.required("hidden_size", 1, kMaxSide);
  config.intermediate = fields.required("intermediate_size", 1, kMaxSide);
  config.layers = fields.required("num_hidden_layers", 1, 4096);
  config.heads = fields.required("num_attention_heads", 1, 65536);
  config.kv_heads = fields.integer("num_key_value_heads", 1, 65536, config.heads);
  config.head_dim = fields.integer("head_dim", 1, 65536, std::max(1, config.hidden / std::max(1, config.heads)));
  config.max_positions = fields.integer("max_position_embeddings", 1, kMaxPositions, 2048);
  config.norm_eps = static_cast<float>(fields.number("rms_norm_eps", 0, 1, 1e-6));
  config.tied = fields.boolean("tie_word_embeddings", false);
  if (nested && outer.contains("tie_word_embeddings") && outer["tie_word_embeddings"].is_boolean() &&
      !fields.has("tie_word_embeddings"))
    config.tied = outer["tie_word_embeddings"].get<bool>();
  const std::string activation = fields.text("hidden_act", "silu");
  if (activation != "silu") fields.note(fmt::format("hidden_act \"{}\" is not supported; silu is", activation));
  config.bos = fields.has("bos_token_id") ? fields.integer("bos_token_id", 0, 1 << 30, -1) : -1;
  if (fields.has("eos_token_id")) read_ids(fields.at("eos_token_id"), fields, "eos_token_id", config.eos);
  read_quantization(outer, json, fields, config.quantization);
  if (fields.boolean("use_sliding_window", false)) fields.note("sliding-window attention is not supported");

  const nlohmann::json& rope = rope_fields(json);
  Fields rope_reader(rope, "config.json: rope");
  const double theta = rope_reader.number("rope_theta", 1, 1e12, fields.number("rope_theta", 1, 1e12, 10000));
  double partial =
      rope_reader.number("partial_rotary_factor", 0.01, 1, fields.number("partial_rotary_factor", 0.01, 1, 1));
  if (family == &kQwen35 && !rope_reader.has("partial_rotary_factor") && !fields.has("partial_rotary_factor"))
    partial = 0.25;
  family->read(fields, config);
  if (!fields.status()) return fields.status();
  if (!rope_reader.status()) return rope_reader.status();
  // A fraction made of whole dims (GGUF) may fall short of them by a rounding.
  auto made = make_rope(rope, theta, static_cast<int>(config.head_dim * partial + 1e-6), config.max_positions);
  if (!made) return made.status();
  config.rope = std::move(*made);
  if (auto shape = check_shape(config); !shape) return shape;
  return config;
}

Result<ModelConfig> config_from_folder(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  std::error_code code;
  if (!std::filesystem::exists(path, code))
    return Status::error("{} has no config.json; a model is a folder in Hugging Face form, or one .gguf file",
                         folder.string());
  auto json = read_json_file(path);
  if (!json) return json.status();
  auto config = config_from_json(*json);
  if (!config) return config;
  const auto generation_path = folder / "generation_config.json";
  if (std::filesystem::exists(generation_path, code)) {
    auto generation = read_json_file(generation_path);
    if (!generation) return generation.status();
    Fields fields(*generation, "generation_config.json");
    if (fields.has("eos_token_id")) {
      std::vector<TokenId> ids;
      read_ids(fields.at("eos_token_id"), fields, "eos_token_id", ids);
      if (!fields.status()) return fields.status();
      std::set<TokenId> all(config->eos.begin(), config->eos.end());
      for (const TokenId id : ids)
        if (all.insert(id).second) config->eos.push_back(id);
    }
  }
  return config;
}

}  // namespace steadfast
