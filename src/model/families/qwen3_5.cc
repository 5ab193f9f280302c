// qwen3_5 (Qwen3.5, 3.6, 3.8 dense hybrids): Gated DeltaNet layers with a gated attention layer every few, q/k norms,
// partial rotation (model-spec 1.1, 1.5, 1.6).
#include "model/families/family.h"

namespace steadfast {
namespace {

void read_layers(Fields& fields, ModelConfig& config) {
  const int interval = fields.integer("full_attention_interval", 1, 4096, 4);
  for (int i = 0; i < config.layers; ++i) config.recurrent.push_back((i + 1) % interval != 0);
  if (!fields.has("layer_types")) return;
  const auto& types = fields.at("layer_types");
  if (!types.is_array() || types.size() != static_cast<std::size_t>(config.layers))
    return fields.note(fmt::format("\"layer_types\" must name the kind of each of the {} layers", config.layers));
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "linear_attention" && types[i] != "full_attention")
      return fields.note(fmt::format(
          "\"layer_types\": layer {} is {}; linear_attention and full_attention are supported", i, types[i].dump()));
    config.recurrent[i] = types[i] == "linear_attention";
  }
}

void read(Fields& fields, ModelConfig& config) {
  read_layers(fields, config);
  LinearAttentionConfig& linear = config.linear;
  linear.key_heads = fields.required("linear_num_key_heads", 1, 65536);
  linear.value_heads = fields.required("linear_num_value_heads", 1, 65536);
  linear.key_dim = fields.required("linear_key_head_dim", 1, 512);
  linear.value_dim = fields.required("linear_value_head_dim", 1, 512);
  linear.taps = fields.integer("linear_conv_kernel_dim", 2, 16, 4);
  if (linear.value_heads % linear.key_heads != 0)
    fields.note(fmt::format("\"linear_num_value_heads\" {} is not a multiple of \"linear_num_key_heads\" {}",
                            linear.value_heads, linear.key_heads));
  if (linear.key_dim % 16 != 0)
    fields.note(fmt::format("\"linear_key_head_dim\" {} is not a multiple of 16", linear.key_dim));
  const std::string gate = fields.text("output_gate_type", "swish");
  if (gate != "swish" && gate != "silu")
    fields.note(fmt::format("\"output_gate_type\" {} is not supported; swish is", gate));
  config.qk_norm = true;
  config.output_gate = fields.boolean("attn_output_gate", true);
  config.qkv_bias = config.output_bias = fields.boolean("attention_bias", false);
}

}  // namespace

const Family kQwen35 = {
    .name = "qwen3_5",
    .read = read,
    .other_name = "qwen3_5_text",
    .gguf_name = "qwen35",
};

}  // namespace steadfast
