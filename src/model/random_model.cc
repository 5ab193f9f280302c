// Blocks are filled once by a counter-based mixer; a tensor's offset into its block is a hash of its name.
#include "model/random_model.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <functional>
#include <map>

#include "tensor/storage.h"

namespace steadfast {
namespace {

constexpr int kBits = 4, kGroup = 64, kTaps = 4;

struct Preset {
  const char* name;
  int layers, hidden, intermediate, heads, kv_heads, head_dim, key_heads, value_heads, delta_dim, vocab;
  bool tied;
  int positions;
};
constexpr Preset kPresets[] = {{"tiny", 4, 128, 256, 4, 2, 64, 2, 4, 32, 512, true, 4096},
                               {"qwen3.5-0.8b", 24, 1024, 3584, 8, 2, 256, 16, 16, 128, 248320, true, 262144},
                               {"qwen3.5-9b", 32, 4096, 12288, 16, 4, 256, 16, 32, 128, 248320, false, 262144},
                               {"qwen3.5-27b", 64, 5120, 17408, 24, 4, 256, 16, 48, 128, 248320, false, 262144}};

std::uint64_t mixed(std::uint64_t x) {  // splitmix64's finaliser
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

double uniform(std::uint64_t counter) { return static_cast<double>(mixed(counter) >> 11) * 0x1p-53; }

class RandomTensors : public TensorSource {
 public:
  explicit RandomTensors(const Preset& preset) : p_(preset) { build(); }
  Status fill();

  const TensorView* find(std::string_view name) const override {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const TensorView& view : views_) all.push_back(view.name);
    return all;
  }
  void release(const TensorView&) const override {}

 private:
  enum class Kind { kCodes, kScales, kBiases, kOwn };
  struct Plan {
    Kind kind;
    int columns;
    double gain;
    std::function<double(std::uint64_t)> value;  // kOwn: of element i, from a uniform number
  };

  void add(const std::string& name, DType dtype, std::vector<std::int64_t> shape, Plan plan) {
    TensorView view;
    view.name = name;
    view.dtype = dtype;
    view.shape = std::move(shape);
    views_.push_back(std::move(view));
    plans_.push_back(std::move(plan));
  }
  void matrix(const std::string& name, int rows, int columns, double gain = 1) {
    add(name + ".weight", DType::kU32, {rows, columns * kBits / 32}, {Kind::kCodes, columns, gain, {}});
    add(name + ".scales", DType::kBF16, {rows, columns / kGroup}, {Kind::kScales, columns, gain, {}});
    add(name + ".biases", DType::kBF16, {rows, columns / kGroup}, {Kind::kBiases, columns, gain, {}});
  }
  void own(const std::string& name, std::vector<std::int64_t> shape, std::function<double(std::uint64_t)> value) {
    add(name, DType::kF32, std::move(shape), {Kind::kOwn, 0, 1, std::move(value)});
  }
  void norm(const std::string& name, int size) {
    own(name + ".weight", {size}, [](std::uint64_t c) { return 1 + 0.1732 * (uniform(c) - 0.5); });
  }
  void build();
  void delta(const std::string& name);
  Status fill_block(Storage& block, std::size_t bytes, const std::function<std::uint64_t(std::uint64_t)>& word);

  Preset p_;
  std::deque<TensorView> views_;
  std::vector<Plan> plans_;
  std::map<std::string, const TensorView*, std::less<>> by_name_;
  std::deque<Storage> blocks_;
};

void RandomTensors::delta(const std::string& name) {
  const int values = p_.value_heads * p_.delta_dim, channels = 2 * p_.key_heads * p_.delta_dim + values;
  matrix(name + ".in_proj_qkv", channels, p_.hidden);
  matrix(name + ".in_proj_z", values, p_.hidden);
  matrix(name + ".in_proj_b", p_.value_heads, p_.hidden);
  matrix(name + ".in_proj_a", p_.value_heads, p_.hidden, 0.25);
  matrix(name + ".out_proj", p_.hidden, values);
  own(name + ".conv1d.weight", {channels, kTaps, 1}, [](std::uint64_t c) { return 1.732 * (uniform(c) - 0.5); });
  own(name + ".A_log", {p_.value_heads}, [](std::uint64_t c) { return std::log(1 + 15 * uniform(c)); });
  // Decays of a step from 0.9999 to about 0.5.
  own(name + ".dt_bias", {p_.value_heads}, [](std::uint64_t c) { return -11 + 9 * uniform(c); });
  norm(name + ".norm", p_.delta_dim);
}

void RandomTensors::build() {
  const std::string outer = "language_model.", body = outer + "model.";
  matrix(body + "embed_tokens", p_.vocab, p_.hidden);
  const int query = p_.heads * p_.head_dim, kv = p_.kv_heads * p_.head_dim;
  for (int layer = 0; layer < p_.layers; ++layer) {
    const std::string name = fmt::format("{}layers.{}.", body, layer);
    norm(name + "input_layernorm", p_.hidden);
    norm(name + "post_attention_layernorm", p_.hidden);
    if ((layer + 1) % 4 != 0) {
      delta(name + "linear_attn");
    } else {
      matrix(name + "self_attn.q_proj", 2 * query, p_.hidden);
      matrix(name + "self_attn.k_proj", kv, p_.hidden);
      matrix(name + "self_attn.v_proj", kv, p_.hidden);
      matrix(name + "self_attn.o_proj", p_.hidden, query);
      norm(name + "self_attn.q_norm", p_.head_dim);
      norm(name + "self_attn.k_norm", p_.head_dim);
    }
    matrix(name + "mlp.gate_proj", p_.intermediate, p_.hidden);
    matrix(name + "mlp.up_proj", p_.intermediate, p_.hidden);
    matrix(name + "mlp.down_proj", p_.hidden, p_.intermediate);
  }
  norm(body + "norm", p_.hidden);
  if (!p_.tied) matrix(outer + "lm_head", p_.vocab, p_.hidden);
  for (const TensorView& view : views_) by_name_[view.name] = &view;
}

Status RandomTensors::fill_block(Storage& block, std::size_t bytes,
                                 const std::function<std::uint64_t(std::uint64_t)>& word) {
  auto storage = Storage::allocate((bytes + 7) / 8 * 8);
  if (!storage) return storage.status();
  block = std::move(*storage);
  auto* to = reinterpret_cast<std::uint64_t*>(block.data());
  for (std::size_t i = 0; i < block.bytes() / 8; ++i) to[i] = word(i);
  return Status::ok();
}

Status RandomTensors::fill() {
  constexpr std::size_t kSlack = 1 << 20;  // offsets into a block, bytes
  const auto bytes_of = [](const TensorView& view) {
    return static_cast<std::size_t>(view.elements()) * info(view.dtype).block_bytes;
  };
  // Codes of all matrices share one block; scales and biases one for each number of columns and gain.
  std::size_t most_codes = 0;
  std::map<std::pair<int, double>, std::size_t> groups;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (plans_[i].kind == Kind::kCodes) most_codes = std::max(most_codes, bytes_of(views_[i]));
    if (plans_[i].kind != Kind::kScales) continue;
    std::size_t& most = groups[{plans_[i].columns, plans_[i].gain}];
    most = std::max(most, bytes_of(views_[i]));
  }
  if (auto status = fill_block(blocks_.emplace_back(), most_codes + kSlack, mixed); !status) return status;
  const Storage& codes = blocks_.back();
  std::map<std::pair<int, double>, std::pair<const Storage*, const Storage*>> pairs;
  for (const auto& [key, bytes] : groups) {
    const double scale = key.second * std::sqrt(12.0 / (std::pow(4.0, kBits) - 1) / key.first);
    const auto scale_at = [scale](std::uint64_t i) { return scale * (0.8 + 0.4 * uniform(2 * i)); };
    const auto four = [](std::uint64_t i, auto value) {
      std::uint64_t word = 0;
      for (unsigned lane = 0; lane < 4; ++lane)
        word |= std::uint64_t{f32_to_bf16(static_cast<float>(value(4 * i + lane)))} << (16 * lane);
      return word;
    };
    auto& [scales, biases] = pairs[key];
    if (auto status =
            fill_block(blocks_.emplace_back(), bytes + kSlack, [&](std::uint64_t i) { return four(i, scale_at); });
        !status)
      return status;
    scales = &blocks_.back();
    const auto bias_at = [&](std::uint64_t i) {
      return scale_at(i) * (uniform(2 * i + 1) - 0.5 - ((1 << kBits) - 1) / 2.0);
    };
    if (auto status =
            fill_block(blocks_.emplace_back(), bytes + kSlack, [&](std::uint64_t i) { return four(i, bias_at); });
        !status)
      return status;
    biases = &blocks_.back();
  }
  for (std::size_t i = 0; i < views_.size(); ++i) {
    TensorView& view = views_[i];
    const Plan& plan = plans_[i];
    const std::string module = view.name.substr(0, view.name.rfind('.'));
    const std::uint64_t seed = XXH3_64bits(module.data(), module.size());
    if (plan.kind == Kind::kOwn) {
      auto storage = Storage::allocate(bytes_of(view));
      if (!storage) return storage.status();
      blocks_.push_back(std::move(*storage));
      auto* to = reinterpret_cast<float*>(blocks_.back().data());
      for (std::int64_t e = 0; e < view.elements(); ++e)
        to[e] = static_cast<float>(plan.value(seed + static_cast<std::uint64_t>(e)));
      view.data = {blocks_.back().data(), bytes_of(view)};
      continue;
    }
    const Storage* block = &codes;
    if (plan.kind == Kind::kScales) block = pairs.at({plan.columns, plan.gain}).first;
    if (plan.kind == Kind::kBiases) block = pairs.at({plan.columns, plan.gain}).second;
    view.data = {block->data() + seed % (kSlack / 64) * 64, bytes_of(view)};
  }
  return Status::ok();
}

nlohmann::json config_of(const Preset& p) {
  nlohmann::json types = nlohmann::json::array();
  for (int layer = 0; layer < p.layers; ++layer)
    types.push_back((layer + 1) % 4 != 0 ? "linear_attention" : "full_attention");
  const nlohmann::json quantization = {{"group_size", kGroup}, {"bits", kBits}, {"mode", "affine"}};
  const nlohmann::json rope = {{"rope_type", "default"}, {"rope_theta", 10000000.0}, {"partial_rotary_factor", 0.25}};
  const nlohmann::json text = {{"model_type", "qwen3_5_text"},
                               {"vocab_size", p.vocab},
                               {"hidden_size", p.hidden},
                               {"intermediate_size", p.intermediate},
                               {"num_hidden_layers", p.layers},
                               {"num_attention_heads", p.heads},
                               {"num_key_value_heads", p.kv_heads},
                               {"head_dim", p.head_dim},
                               {"hidden_act", "silu"},
                               {"max_position_embeddings", p.positions},
                               {"rms_norm_eps", 1e-6},
                               {"attention_bias", false},
                               {"tie_word_embeddings", p.tied},
                               {"rope_parameters", rope},
                               {"attn_output_gate", true},
                               {"linear_conv_kernel_dim", kTaps},
                               {"linear_num_key_heads", p.key_heads},
                               {"linear_num_value_heads", p.value_heads},
                               {"linear_key_head_dim", p.delta_dim},
                               {"linear_value_head_dim", p.delta_dim},
                               {"full_attention_interval", 4},
                               {"layer_types", types}};
  return {{"architectures", {"Qwen3_5ForConditionalGeneration"}},
          {"model_type", "qwen3_5"},
          {"quantization", quantization},
          {"text_config", text},
          {"tie_word_embeddings", p.tied}};
}

}  // namespace

Result<RandomModel> make_random_model(const std::string& preset) {
  std::string known;
  for (const Preset& each : kPresets) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
    const std::string name = each.name;
    if (!preset.starts_with(name)) continue;
    Preset chosen = each;
    const std::string rest = preset.substr(name.size());
    if (!rest.empty()) {
      const char* end = rest.data() + rest.size();
      const auto number = std::from_chars(rest.data() + 1, end, chosen.layers);
      if (rest[0] != '-' || number.ec != std::errc() || number.ptr != end || chosen.layers < 1 || chosen.layers > 1024)
        return Status::error("random:{}: behind the preset give -LAYERS, a number from 1 to 1024", preset);
    }
    auto tensors = std::make_unique<RandomTensors>(chosen);
    if (auto status = tensors->fill(); !status) return status;
    return RandomModel{config_of(chosen), std::move(tensors)};
  }
  return Status::error("random:{} is no known shape; these are: {}", preset, known);
}

}  // namespace steadfast
