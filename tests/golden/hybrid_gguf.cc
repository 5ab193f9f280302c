// Written from the specification alone, and on purpose not from the loader's tables.
#include "hybrid_gguf.h"

#include <cmath>

namespace steadfast::test {
namespace {

using Names = std::map<std::string, std::string>;

const Names& modules() {
  static const Names kModules = {{"input_layernorm.weight", "attn_norm.weight"},
                                 {"post_attention_layernorm.weight", "post_attention_norm.weight"},
                                 {"self_attn.q_proj.weight", "attn_q.weight"},
                                 {"self_attn.k_proj.weight", "attn_k.weight"},
                                 {"self_attn.v_proj.weight", "attn_v.weight"},
                                 {"self_attn.o_proj.weight", "attn_output.weight"},
                                 {"self_attn.q_norm.weight", "attn_q_norm.weight"},
                                 {"self_attn.k_norm.weight", "attn_k_norm.weight"},
                                 {"linear_attn.in_proj_qkv.weight", "attn_qkv.weight"},
                                 {"linear_attn.in_proj_z.weight", "attn_gate.weight"},
                                 {"linear_attn.in_proj_b.weight", "ssm_beta.weight"},
                                 {"linear_attn.in_proj_a.weight", "ssm_alpha.weight"},
                                 {"linear_attn.conv1d.weight", "ssm_conv1d.weight"},
                                 {"linear_attn.A_log", "ssm_a"},
                                 {"linear_attn.dt_bias", "ssm_dt.bias"},
                                 {"linear_attn.norm.weight", "ssm_norm.weight"},
                                 {"linear_attn.out_proj.weight", "ssm_out.weight"},
                                 {"mlp.gate_proj.weight", "ffn_gate.weight"},
                                 {"mlp.up_proj.weight", "ffn_up.weight"},
                                 {"mlp.down_proj.weight", "ffn_down.weight"},
                                 {"fc.weight", "nextn.eh_proj.weight"},
                                 {"pre_fc_norm_embedding.weight", "nextn.enorm.weight"},
                                 {"pre_fc_norm_hidden.weight", "nextn.hnorm.weight"},
                                 {"norm.weight", "nextn.shared_head_norm.weight"}};
  return kModules;
}

// The name in the file, "" for what GGUF keeps elsewhere (the vision tower).
std::string gguf_name(std::string name, int layers) {
  const auto strip = [&name](const std::string& prefix) {
    if (name.rfind(prefix, 0) != 0) return false;
    name = name.substr(prefix.size());
    return true;
  };
  if (name.rfind("model.visual.", 0) == 0) return "";
  if (name == "lm_head.weight") return "output.weight";
  if (strip("mtp.")) {
    strip("layers.0.");
    return "blk." + std::to_string(layers) + "." + modules().at(name);
  }
  strip("model.");
  strip("language_model.");
  if (name == "embed_tokens.weight") return "token_embd.weight";
  if (name == "norm.weight") return "output_norm.weight";
  strip("layers.");
  const auto dot = name.find('.');
  return "blk." + name.substr(0, dot) + "." + modules().at(name.substr(dot + 1));
}

struct Heads {
  int keys, values, key_dim, value_dim;
};

bool ends_with(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

// Units of `unit` values behind the first `skip` values, one a value head, go from grouped order to tiled: head
// k * (values / keys) + r to place r * keys + k.
void tile(std::vector<float>& values, std::size_t skip, std::size_t unit, const Heads& heads) {
  const std::vector<float> old = values;
  const int share = heads.values / heads.keys;
  for (int k = 0; k < heads.keys; ++k)
    for (int r = 0; r < share; ++r) {
      const auto from = skip + static_cast<std::size_t>(k * share + r) * unit,
                 to = skip + static_cast<std::size_t>(r * heads.keys + k) * unit;
      std::copy_n(old.begin() + static_cast<std::ptrdiff_t>(from), unit,
                  values.begin() + static_cast<std::ptrdiff_t>(to));
    }
}

void reorder(const std::string& name, const StoredTensor& tensor, const Heads& heads, std::vector<float>& values) {
  const auto dim = static_cast<std::size_t>(heads.value_dim), columns = static_cast<std::size_t>(tensor.shape.back());
  const auto keys = static_cast<std::size_t>(2 * heads.keys * heads.key_dim);
  if (ends_with(name, "in_proj_qkv.weight") || ends_with(name, "conv1d.weight"))
    tile(values, keys * columns, dim * columns, heads);
  if (ends_with(name, "in_proj_z.weight")) tile(values, 0, dim * columns, heads);
  if (ends_with(name, "in_proj_a.weight") || ends_with(name, "in_proj_b.weight")) tile(values, 0, columns, heads);
  if (ends_with(name, "A_log") || ends_with(name, "dt_bias")) tile(values, 0, 1, heads);
  if (ends_with(name, "linear_attn.out_proj.weight"))
    for (std::size_t row = 0; row < static_cast<std::size_t>(tensor.shape[0]); ++row) {
      std::vector<float> part(values.begin() + static_cast<std::ptrdiff_t>(row * columns),
                              values.begin() + static_cast<std::ptrdiff_t>((row + 1) * columns));
      tile(part, 0, dim, heads);
      std::copy(part.begin(), part.end(), values.begin() + static_cast<std::ptrdiff_t>(row * columns));
    }
}

void add_keys(const nlohmann::json& t, bool mtp, GgufBuilder& builder) {
  const auto number = [&](const char* key) { return t.at(key).get<std::uint32_t>(); };
  const auto add = [&](const std::string& key, const auto& value) { builder.add_kv("qwen35." + key, value); };
  builder.add_kv("general.architecture", "qwen35");
  add("block_count", number("num_hidden_layers") + (mtp ? 1 : 0));
  if (mtp) add("nextn_predict_layers", std::uint32_t{1});
  add("context_length", number("max_position_embeddings"));
  add("embedding_length", number("hidden_size"));
  add("feed_forward_length", number("intermediate_size"));
  add("attention.head_count", number("num_attention_heads"));
  add("attention.head_count_kv", number("num_key_value_heads"));
  add("attention.key_length", number("head_dim"));
  add("attention.value_length", number("head_dim"));
  add("attention.layer_norm_rms_epsilon", t.at("rms_norm_eps").get<float>());
  add("full_attention_interval", number("full_attention_interval"));
  add("ssm.conv_kernel", number("linear_conv_kernel_dim"));
  add("ssm.state_size", number("linear_key_head_dim"));
  add("ssm.group_count", number("linear_num_key_heads"));
  add("ssm.time_step_rank", number("linear_num_value_heads"));
  add("ssm.inner_size", number("linear_num_value_heads") * number("linear_value_head_dim"));
  const auto& rope = t.at("rope_parameters");
  add("rope.freq_base", rope.at("rope_theta").get<float>());
  add("rope.dimension_count",
      static_cast<std::uint32_t>(number("head_dim") * rope.at("partial_rotary_factor").get<double>()));
  add("rope.dimension_sections", rope.at("mrope_section").get<std::vector<std::int32_t>>());
  if (rope.at("rope_type") != "yarn") return;
  add("rope.scaling.type", "yarn");
  add("rope.scaling.factor", rope.at("factor").get<float>());
  add("rope.scaling.original_context_length", rope.at("original_max_position_embeddings").get<std::uint32_t>());
}

}  // namespace

GgufBuilder hybrid_gguf(const Checkpoint& checkpoint, const HybridGgufFaults& faults) {
  const auto& t = checkpoint.config.contains("text_config") ? checkpoint.config["text_config"] : checkpoint.config;
  const Heads heads = {t["linear_num_key_heads"], t["linear_num_value_heads"], t["linear_key_head_dim"],
                       t["linear_value_head_dim"]};
  GgufBuilder builder;
  add_keys(t, checkpoint.tensors.contains("mtp.fc.weight"), builder);
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const std::string stored = gguf_name(name, t["num_hidden_layers"]);
    if (stored.empty()) continue;
    auto values = tensor.floats();
    auto shape = tensor.shape;
    if (!faults.grouped_heads) reorder(name, tensor, heads, values);
    for (float& value : values) {
      if (name.find("norm") != std::string::npos && !ends_with(name, "linear_attn.norm.weight")) value += 1.0f;
      if (ends_with(name, "A_log")) value = -std::exp(value);
    }
    if (ends_with(name, "conv1d.weight")) shape = {shape[0], shape[2]};
    builder.add_tensor(stored, DType::kF32, shape, values);
  }
  return builder;
}

}  // namespace steadfast::test
