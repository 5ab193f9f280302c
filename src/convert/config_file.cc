// Configurations in Hugging Face's words, from either kind of source.
#include "convert/config_file.h"

#include <algorithm>
#include <cmath>

#include "model/rope.h"
#include "quant/dense.h"

namespace steadfast {
namespace {

using nlohmann::json;

constexpr double kRopeTolerance = 1e-5;  // relative: GGUF's factors were rounded to float32 on their way

void add_quantization(json& config, const json& quantization) {
  config.erase("quantization");
  config.erase("quantization_config");
  if (quantization.is_null()) return;
  config["quantization"] = quantization;
  config["quantization_config"] = quantization;
}

json nested(json text, const ModelConfig& model) {
  text.erase("architectures");
  text["model_type"] = "qwen3_5_text";
  json outer = {{"architectures", {"Qwen3_5ForConditionalGeneration"}},
                {"model_type", "qwen3_5"},
                {"tie_word_embeddings", model.tied}};
  if (!model.eos.empty()) outer["eos_token_id"] = model.eos;
  outer["text_config"] = std::move(text);
  return outer;
}

// rope_freqs.weight divides the frequencies; config.json can say so where the divisors are llama3's (model-spec 2.4).
Status add_rope_factors(const GgufFile& file, const ModelConfig& model, json& config) {
  const TensorView* factors = file.find("rope_freqs.weight");
  if (factors == nullptr) return Status::ok();
  auto reader = DenseReader::open(file, *factors);
  if (!reader) return reader.status();
  std::vector<float> values(static_cast<std::size_t>(reader->in()));
  reader->read(0, values.data());
  const float factor = *std::max_element(values.begin(), values.end());
  for (int original = 1024; original <= (1 << 20); original *= 2) {
    const json scaling = {{"rope_type", "llama3"},
                          {"factor", factor},
                          {"low_freq_factor", 1.0},
                          {"high_freq_factor", 4.0},
                          {"original_max_position_embeddings", original}};
    const auto rope = make_rope(scaling, config.value("rope_theta", 10000.0), model.rope.dims, model.max_positions);
    if (!rope) return rope.status();
    bool near = rope->inverse.size() == model.rope.inverse.size();
    for (std::size_t i = 0; near && i < rope->inverse.size(); ++i)
      near = std::abs(rope->inverse[i] - model.rope.inverse[i]) <= kRopeTolerance * std::abs(model.rope.inverse[i]);
    if (!near) continue;
    config["rope_scaling"] = scaling;
    return Status::ok();
  }
  return Status::error(
      "rope_freqs.weight does not follow llama3's rule, which is all that config.json can say; use the .gguf file "
      "itself");
}

// The hybrids keep everything about rotation in rope_parameters, with the sections of their multimodal form.
void gather_rope(const GgufFile& file, json& config) {
  json rope = config.value("rope_scaling", json{{"rope_type", "default"}});
  for (const char* key : {"rope_theta", "partial_rotary_factor"})
    if (config.contains(key)) rope[key] = config[key];
  const GgufValue* sections = file.value("qwen35.rope.dimension_sections");
  if (sections != nullptr && sections->as_array() != nullptr && sections->as_array()->size() >= 3) {
    rope["mrope_section"] = json::array();
    for (int i = 0; i < 3; ++i)
      rope["mrope_section"].push_back((*sections->as_array())[static_cast<std::size_t>(i)].as_int().value_or(0));
    rope["mrope_interleaved"] = true;
  }
  for (const char* key : {"rope_theta", "partial_rotary_factor", "rope_scaling"}) config.erase(key);
  config["rope_parameters"] = std::move(rope);
}

const char* architecture(const std::string& family) {
  if (family == "qwen2") return "Qwen2ForCausalLM";
  return family == "qwen3" ? "Qwen3ForCausalLM" : "LlamaForCausalLM";
}

}  // namespace

json mlx_config(json config, const ModelConfig& model, const json& quantization) {
  config.erase("vision_config");
  if (!model.recurrent.empty() && !config.contains("text_config")) config = nested(std::move(config), model);
  add_quantization(config, quantization);
  return config;
}

Result<json> mlx_config(const GgufFile& file, const ModelConfig& model, const json& quantization) {
  auto read = gguf_as_config(file);
  if (!read) return read.status();
  json config = std::move(*read);
  const bool hybrid = !model.recurrent.empty();
  config.erase("rotary_dims");
  if (!hybrid && config.value("partial_rotary_factor", 1.0) == 1.0) config.erase("partial_rotary_factor");
  config["model_type"] = model.family;
  config["hidden_act"] = "silu";
  config["head_dim"] = model.head_dim;
  config["dtype"] = config["torch_dtype"] = "float16";
  if (model.bos >= 0) config["bos_token_id"] = model.bos;
  if (!model.eos.empty()) config["eos_token_id"] = model.eos;
  if (auto status = add_rope_factors(file, model, config); !status) return status;
  if (hybrid) {
    gather_rope(file, config);
    for (int i = 0; i < model.layers; ++i)
      config["layer_types"].push_back(model.is_recurrent(i) ? "linear_attention" : "full_attention");
    config = nested(std::move(config), model);
  } else {
    config["architectures"] = {architecture(model.family)};
  }
  add_quantization(config, quantization);
  return config;
}

Result<json> generation_config(const std::filesystem::path& gguf, const ModelConfig& model) {
  json config = json::object();
  const auto beside = gguf.parent_path() / "generation_config.json";
  std::error_code error;
  if (std::filesystem::exists(beside, error)) {
    auto read = read_json_file(beside);
    if (!read) return read.status();
    if (!read->is_object()) return Status::error("{} is not an object; correct or remove it", beside.string());
    config = std::move(*read);
  } else {
    config["do_sample"] = false;  // the most probable token, as for the file itself
  }
  if (model.bos >= 0) config["bos_token_id"] = model.bos;
  if (!model.eos.empty()) config["eos_token_id"] = model.eos;
  return config;
}

Status same_model(const ModelConfig& written, const ModelConfig& source) {
  const auto near = [](const RopeConfig& a, const RopeConfig& b) {
    bool same = a.dims == b.dims && a.position_factor == b.position_factor && a.magnitude == b.magnitude &&
                a.inverse.size() == b.inverse.size();
    for (std::size_t i = 0; same && i < a.inverse.size(); ++i)
      same = std::abs(a.inverse[i] - b.inverse[i]) <= kRopeTolerance * std::abs(b.inverse[i]);
    return same;
  };
  const auto shape = [](const ModelConfig& c) {
    return std::vector<int>{c.vocab, c.hidden,   c.intermediate, c.layers,
                            c.heads, c.kv_heads, c.head_dim,     c.max_positions};
  };
  const auto linear = [](const ModelConfig& c) {
    const LinearAttentionConfig& l = c.linear;
    return std::vector<int>{l.key_heads, l.value_heads, l.key_dim, l.value_dim, l.taps};
  };
  const std::pair<const char*, bool> checks[] = {
      {"the family", written.family == source.family},
      {"the shape", shape(written) == shape(source)},
      {"the norms' epsilon", written.norm_eps == source.norm_eps},
      {"the tied head", written.tied == source.tied},
      {"the biases", written.qkv_bias == source.qkv_bias && written.output_bias == source.output_bias &&
                         written.mlp_bias == source.mlp_bias},
      {"the norms of heads, or the output gate",
       written.qk_norm == source.qk_norm && written.output_gate == source.output_gate},
      {"the rotation", near(written.rope, source.rope)},
      {"the recurrent layers", written.recurrent == source.recurrent && linear(written) == linear(source)},
      {"the end ids", written.eos == source.eos}};
  for (const auto& [what, same] : checks)
    if (!same) return Status::error("config.json cannot express {} of this file; use the .gguf file itself", what);
  return Status::ok();
}

}  // namespace steadfast
