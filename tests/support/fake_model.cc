// Configurations, and tensors that are all the same zeros.
#include "support/fake_model.h"

#include <numeric>

#include "backend/fake/history.h"
#include "rows/draw.h"

namespace steadfast::test {
namespace {

constexpr int kHidden = 32, kHeads = 2, kKvHeads = 2, kDim = 32, kInner = 16, kDenseLayers = 2, kHybridLayers = 4;
constexpr int kKeyHeads = 1, kValueHeads = 2, kKeyDim = 16, kValueDim = 16, kTaps = 4;

int layers_of(FakeKind kind) { return kind == FakeKind::kDense ? kDenseLayers : kHybridLayers; }

class Zeros : public TensorSource {
 public:
  void add(const std::string& name, std::vector<std::int64_t> shape) {
    TensorView& view = tensors_[name];
    view = {name, DType::kF32, std::move(shape), {}};
    const auto bytes = static_cast<std::size_t>(view.elements()) * sizeof(float);
    CHECK(bytes <= sizeof kZeros, "tensor {} needs {} bytes of zeros", name, bytes);
    view.data = std::span(kZeros, bytes);
  }
  const TensorView* find(std::string_view name) const override {
    const auto found = tensors_.find(std::string(name));
    return found == tensors_.end() ? nullptr : &found->second;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto& [name, view] : tensors_) all.push_back(name);
    return all;
  }
  void release(const TensorView&) const override {}

 private:
  static constexpr std::byte kZeros[64 * 1024] = {};
  std::map<std::string, TensorView> tensors_;
};

nlohmann::json config_of(FakeKind kind, int max_positions) {
  nlohmann::json config = {{"model_type", "llama"},
                           {"vocab_size", kFakeVocab},
                           {"hidden_size", kHidden},
                           {"intermediate_size", kInner},
                           {"num_hidden_layers", layers_of(kind)},
                           {"num_attention_heads", kHeads},
                           {"num_key_value_heads", kKvHeads},
                           {"head_dim", kDim},
                           {"max_position_embeddings", max_positions},
                           {"rms_norm_eps", 1e-5},
                           {"rope_theta", 10000.0},
                           {"tie_word_embeddings", true}};
  if (kind == FakeKind::kDense) return config;
  config.update(
      {{"model_type", "qwen3_5_text"},
       {"full_attention_interval", 2},
       {"linear_conv_kernel_dim", kTaps},
       {"linear_key_head_dim", kKeyDim},
       {"linear_num_key_heads", kKeyHeads},
       {"linear_num_value_heads", kValueHeads},
       {"linear_value_head_dim", kValueDim},
       {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 10000.0}, {"partial_rotary_factor", 0.5}}}});
  return config;
}

Zeros tensors_of(FakeKind kind) {
  Zeros zeros;
  zeros.add("model.embed_tokens.weight", {kFakeVocab, kHidden});
  zeros.add("model.norm.weight", {kHidden});
  const bool hybrid = kind == FakeKind::kHybrid;
  for (int layer = 0; layer < layers_of(kind); ++layer) {
    const std::string base = fmt::format("model.layers.{}.", layer);
    zeros.add(base + "input_layernorm.weight", {kHidden});
    zeros.add(base + "post_attention_layernorm.weight", {kHidden});
    zeros.add(base + "mlp.gate_proj.weight", {kInner, kHidden});
    zeros.add(base + "mlp.up_proj.weight", {kInner, kHidden});
    zeros.add(base + "mlp.down_proj.weight", {kHidden, kInner});
    if (hybrid && layer % 2 == 0) {
      const std::string delta = base + "linear_attn.";
      constexpr int kValues = kValueHeads * kValueDim, kConv = 2 * kKeyHeads * kKeyDim + kValues;
      zeros.add(delta + "in_proj_qkv.weight", {kConv, kHidden});
      zeros.add(delta + "in_proj_z.weight", {kValues, kHidden});
      zeros.add(delta + "in_proj_b.weight", {kValueHeads, kHidden});
      zeros.add(delta + "in_proj_a.weight", {kValueHeads, kHidden});
      zeros.add(delta + "out_proj.weight", {kHidden, kValues});
      zeros.add(delta + "norm.weight", {kValueDim});
      zeros.add(delta + "dt_bias", {kValueHeads});
      zeros.add(delta + "A_log", {kValueHeads});
      zeros.add(delta + "conv1d.weight", {kConv, 1, kTaps});
      continue;
    }
    const std::string attention = base + "self_attn.";
    zeros.add(attention + "q_proj.weight", {(hybrid ? 2 : 1) * kHeads * kDim, kHidden});
    zeros.add(attention + "k_proj.weight", {kKvHeads * kDim, kHidden});
    zeros.add(attention + "v_proj.weight", {kKvHeads * kDim, kHidden});
    zeros.add(attention + "o_proj.weight", {kHidden, kHeads * kDim});
    if (!hybrid) continue;
    zeros.add(attention + "q_norm.weight", {kDim});
    zeros.add(attention + "k_norm.weight", {kDim});
  }
  return zeros;
}

}  // namespace

FakeModel fake_model(FakeKind kind, int max_positions, DType kv_dtype) {
  auto config = config_from_json(config_of(kind, max_positions));
  CHECK(config.is_ok(), "{}", config.message());
  const Zeros zeros = tensors_of(kind);
  const auto naming = Naming::hugging_face(zeros);
  CHECK(naming.is_ok(), "{}", naming.message());
  auto backend = std::make_unique<fake::FakeBackend>();
  FakeModel model;
  model.backend = backend.get();
  model.ledger = backend->ledger();
  auto weights = ModelWeights::load(*config, zeros, *naming, *backend, nullptr);
  CHECK(weights.is_ok(), "{}", weights.message());
  model.loaded = std::make_unique<LoadedModel>();
  model.loaded->model = std::make_unique<Model>(std::move(*config), std::move(*weights), *backend);
  model.loaded->backend = std::move(backend);
  model.loaded->kv_dtype = kv_dtype;
  ModelCard& card = model.loaded->card;
  card.name = card.digest = "fake";
  card.family = model.loaded->model->config().family;
  card.vocab_size = kFakeVocab;
  card.window = max_positions;
  return model;
}

std::vector<TokenId> fake_reply(FakeKind kind, const Request& request, int tokens) {
  std::vector<TokenId> all = request.prompt;
  History history{request.prompt, {}};
  std::vector<float> logits(kFakeVocab);
  DrawScratch scratch;
  std::uint64_t here = fake::kStart;
  std::size_t done = 0;
  for (int i = 0; i < tokens; ++i) {
    for (; done < all.size(); ++done) here = fake::chain(here, all[done], static_cast<int>(done));
    fake::logits_behind(here, layers_of(kind), logits);
    apply_penalties(logits, request.sampling, history);
    all.push_back(draw(logits, request.sampling, static_cast<std::int64_t>(all.size()), scratch));
    history.reply.push_back(all.back());
  }
  return history.reply;
}

}  // namespace steadfast::test
