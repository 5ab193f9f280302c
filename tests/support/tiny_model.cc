// Tensors of a tiny llama, and its two file forms.
#include "support/tiny_model.h"

#include <random>

#include "base/check.h"
#include "support/safetensors_builder.h"

namespace steadfast::test {
namespace {

TinyModel::Tensor normal(std::mt19937_64& dice, std::vector<std::int64_t> shape, float mean, float spread) {
  std::normal_distribution<float> distribution(mean, spread);
  std::size_t count = 1;
  for (const auto extent : shape) count *= static_cast<std::size_t>(extent);
  TinyModel::Tensor tensor{std::move(shape), std::vector<float>(count)};
  for (float& value : tensor.values) value = distribution(dice);
  return tensor;
}

std::string gguf_name(const std::string& name) {
  static const std::map<std::string, std::string> kModules = {
      {"input_layernorm", "attn_norm"}, {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_proj", "attn_q"},   {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},   {"self_attn.o_proj", "attn_output"},
      {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},    {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},    {"lm_head", "output"}};
  const auto dot = name.rfind('.');
  const std::string module = name.substr(0, dot), suffix = name.substr(dot);
  const std::string layers = "model.layers.";
  if (module.rfind(layers, 0) != 0) return kModules.at(module) + suffix;
  const auto end = module.find('.', layers.size());
  return "blk." + module.substr(layers.size(), end - layers.size()) + "." + kModules.at(module.substr(end + 1)) +
         suffix;
}

// Row h * dim + s * dim / 2 + i of Hugging Face's tensor goes to row h * dim + 2 i + s.
TinyModel::Tensor interleaved(const TinyModel::Tensor& from, int dim) {
  TinyModel::Tensor to = from;
  const std::size_t rows = static_cast<std::size_t>(from.shape[0]), width = from.values.size() / rows,
                    d = static_cast<std::size_t>(dim);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t head = row / d, s = row % d / (d / 2), i = row % (d / 2);
    std::copy_n(from.values.begin() + static_cast<std::ptrdiff_t>(row * width), width,
                to.values.begin() + static_cast<std::ptrdiff_t>((head * d + 2 * i + s) * width));
  }
  return to;
}

}  // namespace

TinyModel TinyModel::random(std::uint64_t seed, bool biases, int vocab) {
  TinyModel m;
  m.vocab = vocab;
  std::mt19937_64 dice(seed);
  m.config = {{"model_type", "llama"},
              {"vocab_size", m.vocab},
              {"hidden_size", m.hidden},
              {"intermediate_size", m.intermediate},
              {"num_hidden_layers", m.layers},
              {"num_attention_heads", m.heads},
              {"num_key_value_heads", m.kv_heads},
              {"head_dim", m.head_dim},
              {"max_position_embeddings", m.max_positions},
              {"rms_norm_eps", 1e-5},
              {"rope_theta", 10000.0},
              {"attention_bias", biases},
              {"tie_word_embeddings", false}};
  const auto matrix = [&](const std::string& name, int out, int in) {
    m.tensors[name + ".weight"] = normal(dice, {out, in}, 0, 0.15f);
    if (biases && name.find("self_attn") != std::string::npos) m.tensors[name + ".bias"] = normal(dice, {out}, 0, 0.3f);
  };
  const auto norm = [&](const std::string& name) { m.tensors[name + ".weight"] = normal(dice, {m.hidden}, 1, 0.1f); };
  matrix("model.embed_tokens", m.vocab, m.hidden);
  for (int layer = 0; layer < m.layers; ++layer) {
    const std::string base = "model.layers." + std::to_string(layer) + ".";
    norm(base + "input_layernorm");
    norm(base + "post_attention_layernorm");
    matrix(base + "self_attn.q_proj", m.heads * m.head_dim, m.hidden);
    matrix(base + "self_attn.k_proj", m.kv_heads * m.head_dim, m.hidden);
    matrix(base + "self_attn.v_proj", m.kv_heads * m.head_dim, m.hidden);
    matrix(base + "self_attn.o_proj", m.hidden, m.heads * m.head_dim);
    matrix(base + "mlp.gate_proj", m.intermediate, m.hidden);
    matrix(base + "mlp.up_proj", m.intermediate, m.hidden);
    matrix(base + "mlp.down_proj", m.hidden, m.intermediate);
  }
  norm("model.norm");
  matrix("lm_head", m.vocab, m.hidden);
  return m;
}

void TinyModel::write(const TempFolder& folder) const {
  SafetensorsBuilder builder;
  for (const auto& [name, tensor] : tensors) builder.add_tensor(name, DType::kF32, tensor.shape, tensor.values);
  folder.write("config.json", config.dump());
  folder.write("model.safetensors", builder.build());
}

GgufBuilder TinyModel::gguf() const {
  GgufBuilder builder;
  const auto number = [](int value) { return static_cast<std::uint32_t>(value); };
  builder.add_kv("general.architecture", "llama");
  builder.add_kv("llama.block_count", number(layers));
  builder.add_kv("llama.context_length", number(max_positions));
  builder.add_kv("llama.embedding_length", number(hidden));
  builder.add_kv("llama.feed_forward_length", number(intermediate));
  builder.add_kv("llama.attention.head_count", number(heads));
  builder.add_kv("llama.attention.head_count_kv", number(kv_heads));
  builder.add_kv("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  builder.add_kv("llama.rope.dimension_count", number(head_dim));
  builder.add_kv("llama.rope.freq_base", 10000.0f);
  for (const auto& [name, tensor] : tensors) {
    const bool rotated = name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos;
    const Tensor& stored = rotated ? interleaved(tensor, head_dim) : tensor;
    builder.add_tensor(gguf_name(name), DType::kF32, stored.shape, stored.values);
  }
  return builder;
}

}  // namespace steadfast::test
