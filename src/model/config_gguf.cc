// GGUF metadata to ModelConfig (model-spec 4.5). The tensors decide what the metadata does not say: tied heads,
// vocabulary.
#include <algorithm>

#include "formats/gguf.h"
#include "model/config.h"
#include "model/families/family.h"
#include "model/rope.h"
#include "quant/dense.h"

namespace steadfast {
namespace {

// The keys that the shared reader knows, under Hugging Face's names, so that one set of checks serves both forms.
nlohmann::json as_config(const GgufFile& file, const std::string& arch) {
  nlohmann::json json = {{"model_type", arch}};
  const auto copy_int = [&](const char* to, const std::string& key) {
    if (const GgufValue* value = file.value(arch + key))
      if (auto number = value->as_int()) json[to] = *number;
  };
  const auto copy_float = [&](const char* to, const std::string& key) {
    if (const GgufValue* value = file.value(arch + key))
      if (auto number = value->as_float()) json[to] = *number;
  };
  copy_int("num_hidden_layers", ".block_count");
  copy_int("max_position_embeddings", ".context_length");
  copy_int("hidden_size", ".embedding_length");
  copy_int("intermediate_size", ".feed_forward_length");
  copy_int("num_attention_heads", ".attention.head_count");
  copy_int("num_key_value_heads", ".attention.head_count_kv");
  copy_int("head_dim", ".attention.key_length");
  copy_int("rotary_dims", ".rope.dimension_count");
  copy_int("full_attention_interval", ".full_attention_interval");
  copy_int("linear_conv_kernel_dim", ".ssm.conv_kernel");
  copy_int("linear_key_head_dim", ".ssm.state_size");
  copy_int("linear_num_key_heads", ".ssm.group_count");
  copy_int("linear_num_value_heads", ".ssm.time_step_rank");
  copy_float("rms_norm_eps", ".attention.layer_norm_rms_epsilon");
  copy_float("rope_theta", ".rope.freq_base");
  const GgufValue* inner = file.value(arch + ".ssm.inner_size");  // value heads times their dims
  const int value_heads = json.value("linear_num_value_heads", 0);
  if (inner != nullptr && inner->as_int() && value_heads > 0)
    json["linear_value_head_dim"] = *inner->as_int() / value_heads;
  const GgufValue* scaling = file.value(arch + ".rope.scaling.type");
  if (scaling != nullptr && scaling->as_string() && *scaling->as_string() != "none") {
    nlohmann::json rope = {{"rope_type", std::string(*scaling->as_string())}};
    if (const GgufValue* value = file.value(arch + ".rope.scaling.factor"))
      if (auto number = value->as_float()) rope["factor"] = *number;
    if (const GgufValue* value = file.value(arch + ".rope.scaling.original_context_length"))
      if (auto number = value->as_int()) rope["original_max_position_embeddings"] = *number;
    json["rope_scaling"] = rope;
  }
  return json;
}

Status read_rope_factors(const GgufFile& file, ModelConfig& config) {
  const TensorView* factors = file.find("rope_freqs.weight");
  if (factors == nullptr) return Status::ok();
  auto reader = DenseReader::open(file, *factors);
  if (!reader) return reader.status();
  if (reader->out() != 1 || static_cast<std::size_t>(reader->in()) != config.rope.inverse.size())
    return Status::error("tensor rope_freqs.weight has {} values, the model rotates {} pairs", reader->in(),
                         config.rope.inverse.size());
  std::vector<float> values(config.rope.inverse.size());
  reader->read(0, values.data());
  for (std::size_t i = 0; i < values.size(); ++i) config.rope.inverse[i] = config.rope.inverse[i] / values[i];
  return Status::ok();
}

}  // namespace

Result<nlohmann::json> gguf_as_config(const GgufFile& file) {
  const GgufValue* name = file.value("general.architecture");
  if (name == nullptr || !name->as_string()) return Status::error("the GGUF file names no general.architecture");
  const std::string arch(*name->as_string());
  const Family* family = find_family(arch);
  if (family == nullptr)
    return Status::error("GGUF architecture \"{}\" is not supported; {} are", arch, family_names());
  const TensorView* table = file.find("token_embd.weight");
  if (table == nullptr || table->shape.size() != 2)
    return Status::error("the GGUF file has no matrix token_embd.weight");
  nlohmann::json json = as_config(file, arch);
  json["vocab_size"] = table->shape[0];
  const GgufValue* drafters = file.value(arch + ".nextn_predict_layers");  // counted as blocks behind the model's own
  if (drafters != nullptr && drafters->as_int() && json.contains("num_hidden_layers"))
    json["num_hidden_layers"] = json["num_hidden_layers"].get<std::int64_t>() - *drafters->as_int();
  json["tie_word_embeddings"] = file.find("output.weight") == nullptr;
  if (json.contains("rotary_dims") && json["rotary_dims"].is_number_integer()) {
    const int dim =
        json.value("head_dim", json.value("hidden_size", 0) / std::max(1, json.value("num_attention_heads", 1)));
    if (dim > 0) json["partial_rotary_factor"] = json["rotary_dims"].get<double>() / dim;
  }
  json["attention_bias"] = file.find("blk.0.attn_output.bias") != nullptr;
  json["mlp_bias"] = file.find("blk.0.ffn_up.bias") != nullptr;
  return json;
}

Result<ModelConfig> config_from_gguf(const GgufFile& file) {
  const auto json = gguf_as_config(file);
  if (!json) return json.status();
  auto config = config_from_json(*json);
  if (!config) return Status::error("GGUF metadata: {}", config.message());
  config->qkv_bias = file.find("blk.0.attn_q.bias") != nullptr;
  config->output_bias = file.find("blk.0.attn_output.bias") != nullptr;
  config->mlp_bias = file.find("blk.0.ffn_up.bias") != nullptr;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    const GgufValue* value = file.value(key);
    if (value == nullptr || !value->as_int()) continue;
    const auto id = *value->as_int();
    if (id < 0 || id >= config->vocab)
      return Status::error("GGUF metadata: {} {} is outside the vocabulary of {}", key, id, config->vocab);
    if (std::find(config->eos.begin(), config->eos.end(), id) == config->eos.end())
      config->eos.push_back(static_cast<TokenId>(id));
  }
  if (const GgufValue* bos = file.value("tokenizer.ggml.bos_token_id"))
    if (bos->as_int() && *bos->as_int() >= 0 && *bos->as_int() < config->vocab)
      config->bos = static_cast<TokenId>(*bos->as_int());
  if (auto status = read_rope_factors(file, *config); !status) return status;
  return config;
}

}  // namespace steadfast
