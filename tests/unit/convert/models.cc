// Golden models in GGUF's form (model-spec 1.10, 4.4, 4.5), written independently of the converter's own tables.
#include "models.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "base/exact_math.h"
#include "engine/score.h"
#include "model/config.h"

namespace steadfast::test {
namespace {

using Order = std::vector<std::size_t>;  // row of the source for each row of the result

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& names) {
  for (const auto& [from, to] : names)
    if (const auto at = text.find(from); at != text.npos) return text.replace(at, from.size(), to);
  return text;
}

std::string gguf_name(std::string name, int layers, bool hybrid) {
  for (const char* prefix : {"model.language_model.", "model."})
    if (name.starts_with(prefix)) name = name.substr(std::string(prefix).size());
  const std::string block = fmt::format("blk.{}.", layers);
  if (name.starts_with("mtp.layers.0.")) name = "layers." + std::to_string(layers) + name.substr(12);
  if (name == "mtp.fc.weight") return block + "nextn.eh_proj.weight";
  if (name == "mtp.norm.weight") return block + "nextn.shared_head_norm.weight";
  if (name.starts_with("mtp."))
    return block + (name.find("embedding") != name.npos ? "nextn.enorm.weight" : "nextn.hnorm.weight");
  if (!name.starts_with("layers."))
    return replaced(name, {{"embed_tokens", "token_embd"}, {"lm_head", "output"}, {"norm", "output_norm"}});
  return replaced("blk" + name.substr(6), {{"input_layernorm", "attn_norm"},
                                           {"post_attention_layernorm", hybrid ? "post_attention_norm" : "ffn_norm"},
                                           {"self_attn.q_proj", "attn_q"},
                                           {"self_attn.k_proj", "attn_k"},
                                           {"self_attn.v_proj", "attn_v"},
                                           {"self_attn.o_proj", "attn_output"},
                                           {"self_attn.q_norm", "attn_q_norm"},
                                           {"self_attn.k_norm", "attn_k_norm"},
                                           {"linear_attn.in_proj_qkv", "attn_qkv"},
                                           {"linear_attn.in_proj_z", "attn_gate"},
                                           {"linear_attn.in_proj_b", "ssm_beta"},
                                           {"linear_attn.in_proj_a", "ssm_alpha"},
                                           {"linear_attn.conv1d", "ssm_conv1d"},
                                           {"linear_attn.A_log", "ssm_a"},
                                           {"linear_attn.dt_bias", "ssm_dt.bias"},
                                           {"linear_attn.norm", "ssm_norm"},
                                           {"linear_attn.out_proj", "ssm_out"},
                                           {"mlp.gate_proj", "ffn_gate"},
                                           {"mlp.up_proj", "ffn_up"},
                                           {"mlp.down_proj", "ffn_down"}});
}

// GGUF row h * dim + 2i + s holds Hugging Face's row h * dim + s * dim / 2 + i.
Order rotated(int heads, int dim) {
  Order order(static_cast<std::size_t>(heads * dim));
  for (int h = 0; h < heads; ++h)
    for (int s = 0; s < 2; ++s)
      for (int i = 0; i < dim / 2; ++i)
        order[static_cast<std::size_t>(h * dim + 2 * i + s)] = static_cast<std::size_t>(h * dim + s * dim / 2 + i);
  return order;
}

// Behind `before` elements, GGUF's value head r * keys + kh is Hugging Face's kh * repeats + r, `width` elements each.
Order tiled(const LinearAttentionConfig& d, int width, int before) {
  const int repeats = d.value_heads / d.key_heads;
  Order order;
  for (int i = 0; i < before; ++i) order.push_back(static_cast<std::size_t>(i));
  for (int r = 0; r < repeats; ++r)
    for (int key = 0; key < d.key_heads; ++key)
      for (int i = 0; i < width; ++i)
        order.push_back(static_cast<std::size_t>(before + (key * repeats + r) * width + i));
  return order;
}

struct Values {
  std::vector<float> data;
  std::vector<std::int64_t> shape;
};

void order_rows(Values& values, const Order& order) {
  const std::size_t width = values.data.size() / order.size();
  std::vector<float> result;
  for (const std::size_t row : order)
    for (std::size_t i = 0; i < width; ++i) result.push_back(values.data[row * width + i]);
  values.data.swap(result);
}

void order_columns(Values& values, const Order& order) {
  std::vector<float> result;
  for (std::size_t row = 0; row < values.data.size() / order.size(); ++row)
    for (const std::size_t column : order) result.push_back(values.data[row * order.size() + column]);
  values.data.swap(result);
}

bool has(const std::string& name, const char* part) { return name.find(part) != name.npos; }

void to_gguf_layout(const std::string& name, const ModelConfig& config, Values& values) {
  const LinearAttentionConfig& d = config.linear;
  const int keys = 2 * d.key_heads * d.key_dim;
  if (config.family == "llama" && has(name, "attn_q.")) order_rows(values, rotated(config.heads, config.head_dim));
  if (config.family == "llama" && has(name, "attn_k.")) order_rows(values, rotated(config.kv_heads, config.head_dim));
  if (config.recurrent.empty()) return;
  if (has(name, "attn_qkv") || has(name, "ssm_conv1d")) order_rows(values, tiled(d, d.value_dim, keys));
  if (has(name, "attn_gate")) order_rows(values, tiled(d, d.value_dim, 0));
  if (has(name, "ssm_beta") || has(name, "ssm_alpha") || has(name, "ssm_a") || has(name, "ssm_dt"))
    if (!has(name, "ssm_alpha") || has(name, ".weight")) order_rows(values, tiled(d, 1, 0));
  if (has(name, "ssm_out")) order_columns(values, tiled(d, d.value_dim, 0));
  if (has(name, "ssm_conv1d")) values.shape = {values.shape[0], values.shape[2]};
  if (name.ends_with("ssm_a"))
    for (float& value : values.data) value = -static_cast<float>(exact_exp(static_cast<double>(value)));
  if (has(name, "norm") && !has(name, "ssm_norm"))
    for (float& value : values.data) value = 1.0f + value;
}

void add_metadata(GgufBuilder& builder, const ModelConfig& config, const nlohmann::json& json, bool has_mtp) {
  const std::string arch = config.recurrent.empty() ? config.family : "qwen35";
  const auto add = [&](const char* key, int value) { builder.add_kv(arch + key, static_cast<std::uint32_t>(value)); };
  builder.add_kv("general.architecture", arch);
  add(".block_count", config.layers + (has_mtp ? 1 : 0));
  if (has_mtp) add(".nextn_predict_layers", 1);
  add(".context_length", config.max_positions);
  add(".embedding_length", config.hidden);
  add(".feed_forward_length", config.intermediate);
  add(".attention.head_count", config.heads);
  add(".attention.head_count_kv", config.kv_heads);
  add(".attention.key_length", config.head_dim);
  add(".rope.dimension_count", config.rope.dims);
  builder.add_kv(arch + ".attention.layer_norm_rms_epsilon", config.norm_eps);
  const auto& text = json.contains("text_config") ? json["text_config"] : json;
  const auto& rope = text["rope_parameters"];
  builder.add_kv(arch + ".rope.freq_base", rope["rope_theta"].get<float>());
  const std::string type = rope.value("rope_type", "default");
  if (type == "yarn" || type == "linear") {
    builder.add_kv(arch + ".rope.scaling.type", type)
        .add_kv(arch + ".rope.scaling.factor", rope["factor"].get<float>());
    if (rope.contains("original_max_position_embeddings"))
      add(".rope.scaling.original_context_length", rope["original_max_position_embeddings"].get<int>());
  }
  if (config.recurrent.empty()) return;
  add(".full_attention_interval", text["full_attention_interval"].get<int>());
  add(".ssm.conv_kernel", config.linear.taps);
  add(".ssm.state_size", config.linear.key_dim);
  add(".ssm.group_count", config.linear.key_heads);
  add(".ssm.time_step_rank", config.linear.value_heads);
  add(".ssm.inner_size", config.linear.value_heads * config.linear.value_dim);
  builder.add_kv(arch + ".rope.dimension_sections", std::vector<std::int32_t>{11, 11, 10, 0});
}

}  // namespace

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(STEADFAST_SOURCE_DIR) / "tests/golden" / name;
}

nlohmann::json json_of(const std::filesystem::path& path) {
  auto json = read_json_file(path);
  EXPECT_TRUE(json.is_ok()) << json.message();
  return json ? *json : nlohmann::json();
}

std::shared_ptr<const SafetensorsFolder> tensors_of(const std::filesystem::path& folder) {
  auto opened = SafetensorsFolder::open(folder);
  EXPECT_TRUE(opened.is_ok()) << opened.message();
  return opened ? *opened : nullptr;
}

std::vector<float> floats_of(const TensorView& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    if (tensor.dtype == DType::kF32)
      std::memcpy(&values[i], tensor.data.data() + 4 * i, 4);
    else
      std::memcpy(&half, tensor.data.data() + 2 * i, 2);
    if (tensor.dtype == DType::kF16) values[i] = f16_to_f32(half);
    if (tensor.dtype == DType::kBF16) values[i] = bf16_to_f32(half);
  }
  return values;
}

GgufBuilder gguf_of_golden(const std::string& name, const TypeOf& type_of) {
  auto config = config_from_folder(golden(name));
  EXPECT_TRUE(config.is_ok()) << config.message();
  const auto source = tensors_of(golden(name));
  const bool hybrid = !config->recurrent.empty();
  GgufBuilder builder;
  add_metadata(builder, *config, json_of(golden(name) / "config.json"), source->find("mtp.fc.weight") != nullptr);
  for (const std::string& from : source->names()) {
    if (has(from, "visual")) continue;
    Values values{floats_of(*source->find(from)), source->find(from)->shape};
    std::string to = gguf_name(from, config->layers, hybrid);
    if (to.ends_with(".ssm_dt.bias.weight")) to.resize(to.size() - 7);
    to_gguf_layout(to, *config, values);
    const bool matrix = values.shape.size() == 2 && !has(to, "ssm_conv1d");
    DType type = matrix ? type_of(to) : DType::kF32;
    const auto block = static_cast<std::int64_t>(info(type).block_elements);
    if (values.shape.back() % block != 0) type = DType::kF16;  // as llama.cpp does
    builder.add_tensor(to, type, values.shape, values.data);
  }
  return builder;
}

std::filesystem::path write_gguf(const TempFolder& folder, const GgufBuilder& builder) {
  const Bytes bytes = builder.build();
  return folder.write("model.gguf", std::span<const std::byte>(bytes));
}

ConvertReport convert(const std::filesystem::path& in, const std::filesystem::path& out, ConvertOptions options) {
  auto report = convert_model(in, out, options);
  EXPECT_TRUE(report.is_ok()) << report.message();
  return report ? *report : ConvertReport{};
}

std::vector<float> logits_of(const std::filesystem::path& model, Act act) {
  std::vector<float> all;
  LoadOptions options;
  options.act = act;
  options.threads = 1;
  auto loaded = load_model(model, options);
  EXPECT_TRUE(loaded.is_ok()) << loaded.message();
  if (!loaded) return all;
  const int vocab = (*loaded)->card.vocab_size;
  std::vector<TokenId> ids;
  for (int i = 0; i < 40; ++i) ids.push_back((i * 37 + 11) % vocab);
  const auto status = score(**loaded, ids, 16, [&](int, int rows, const float* logits) {
    all.insert(all.end(), logits, logits + static_cast<std::ptrdiff_t>(rows) * vocab);
    return Status::ok();
  });
  EXPECT_TRUE(status.is_ok()) << status.message();
  return all;
}

std::string difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty()) return fmt::format("sizes {} and {}", a.size(), b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    count += std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]);
  return count == 0 ? "equal" : fmt::format("{} of {} differ", count, a.size());
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty()) return HUGE_VAL;
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    size += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(apart / size);
}

}  // namespace steadfast::test
