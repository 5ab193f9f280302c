// Loading: each module is found by its name, checked against the shape that the config needs, packed by the backend.
#include "model/weights.h"

#include <fmt/ranges.h>
#include <xxhash.h>

#include <set>

#include "base/exact_math.h"
#include "model/extra_tensors.h"
#include "model/families/family.h"
#include "model/fields.h"
#include "quant/affine.h"
#include "quant/dense.h"

namespace steadfast {

class WeightLoader {
 public:
  WeightLoader(const ModelConfig& config, const TensorSource& source, const Naming& naming, Backend& backend)
      : config_(config), source_(source), naming_(naming), backend_(backend), hash_(XXH3_createState()) {
    XXH3_128bits_reset(hash_);
    offset_norms_ = norms_are_offset();
    out_.tiled_heads_ = naming.is_gguf();
  }
  ~WeightLoader() { XXH3_freeState(hash_); }
  WeightLoader(const WeightLoader&) = delete;
  WeightLoader& operator=(const WeightLoader&) = delete;

  Result<ModelWeights> load(const ModelWeights::Progress& progress) {
    status_ = check_mtp_head(config_, source_, naming_);
    matrix("embed_tokens", config_.vocab, config_.hidden, {}, out_.embedding_);
    for (int layer = 0; layer < config_.layers && status_; ++layer) {
      load_layer(layer);
      if (progress) progress(layer + 1, config_.layers);
    }
    out_.final_norm_ = norm("norm.weight", config_.hidden);
    if (!config_.tied) matrix("lm_head", config_.vocab, config_.hidden, {}, out_.head_);
    if (!status_) return status_;
    const XXH128_hash_t digest = XXH3_128bits_digest(hash_);
    out_.digest_ = fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
    std::vector<std::string> extra = source_.names();
    std::erase_if(extra, [this](const std::string& name) {
      return used_.contains(name) || name == "rope_freqs.weight";
    });  // the config's
    out_.notes_ = notes_on_extra_tensors(extra, config_, naming_);
    return std::move(out_);
  }

 private:
  void load_layer(int layer) {
    const std::string base = fmt::format("layers.{}.", layer);
    const int hidden = config_.hidden, inner = config_.intermediate;
    LayerWeights& w = out_.layers_.emplace_back();
    w.input_norm = norm(base + "input_layernorm.weight", hidden);
    w.post_norm = norm(base + "post_attention_layernorm.weight", hidden);
    if (config_.is_recurrent(layer))
      load_delta(base + "linear_attn.", w);
    else
      load_attention(base + "self_attn.", w);
    linear(base + "mlp.gate_proj", inner, hidden, config_.mlp_bias, {}, w.gate);
    linear(base + "mlp.up_proj", inner, hidden, config_.mlp_bias, {}, w.up);
    linear(base + "mlp.down_proj", hidden, inner, config_.mlp_bias, {}, w.down);
  }

  void load_attention(const std::string& base, LayerWeights& w) {
    const int hidden = config_.hidden, query = config_.query_width(), kv = config_.kv_width();
    if (config_.qk_norm) {
      w.query_norm = norm(base + "q_norm.weight", config_.head_dim);
      w.key_norm = norm(base + "k_norm.weight", config_.head_dim);
    }
    if (config_.output_gate) {  // each head's rows: head_dim of the query, then head_dim of the gate
      linear(base + "q_proj", 2 * query, hidden, config_.qkv_bias, half_rows(0), w.query);
      linear(base + "q_proj", 2 * query, hidden, config_.qkv_bias, half_rows(1), w.query_gate);
    } else {
      linear(base + "q_proj", query, hidden, config_.qkv_bias, rotated_rows(config_.heads), w.query);
    }
    linear(base + "k_proj", kv, hidden, config_.qkv_bias, rotated_rows(config_.kv_heads), w.key);
    linear(base + "v_proj", kv, hidden, config_.qkv_bias, {}, w.value);
    linear(base + "o_proj", hidden, query, config_.output_bias, {}, w.output);
  }

  void load_delta(const std::string& base, LayerWeights& w) {
    const LinearAttentionConfig& d = config_.linear;
    const int hidden = config_.hidden, value_width = d.value_heads * d.value_dim,
              conv_width = 2 * d.key_heads * d.key_dim + value_width;
    linear(base + "in_proj_qkv", conv_width, hidden, false, {}, w.delta_mixed);
    linear(base + "in_proj_z", value_width, hidden, false, {}, w.delta_z);
    linear(base + "in_proj_b", d.value_heads, hidden, false, {}, w.delta_b);
    linear(base + "in_proj_a", d.value_heads, hidden, false, {}, w.delta_a);
    linear(base + "out_proj", hidden, value_width, false, {}, w.delta_output);
    w.delta_norm = vector(base + "norm", ".weight", d.value_dim);
    w.delta.dt_bias = vector(base + "dt_bias", "", d.value_heads);
    w.delta.a = vector(base + "A_log", "", d.value_heads, [this](std::vector<float>& values) {
      if (naming_.is_gguf()) return;  // holds -e^A_log itself
      for (float& value : values) value = -static_cast<float>(exact_exp(static_cast<double>(value)));
    });
    check_conv(base, conv_width);
    w.delta.conv = vector(base + "conv1d", ".weight", conv_width * d.taps, [&](std::vector<float>& values) {
      std::vector<float> by_tap(values.size());  // the file holds [channel][tap] in every form
      for (int c = 0; c < conv_width; ++c)
        for (int j = 0; j < d.taps; ++j)
          by_tap[static_cast<std::size_t>(j * conv_width + c)] = values[static_cast<std::size_t>(c * d.taps + j)];
      values.swap(by_tap);
    });
  }

  // [channels, 1, taps], MLX's [channels, taps, 1] or GGUF's [channels, taps]: the same bytes. The norms' convention
  // follows the layout, so that a file may not mix the first two.
  void check_conv(const std::string& base, int channels) {
    if (!status_) return;
    const TensorView* conv = find(base + "conv1d", ".weight");
    if (conv == nullptr) return;
    const int taps = config_.linear.taps;
    const std::vector<std::int64_t> torch = {channels, 1, taps}, mlx = {channels, taps, 1}, flat = {channels, taps};
    const bool known = naming_.is_gguf() ? conv->shape == flat : conv->shape == (offset_norms_ ? torch : mlx);
    if (!known)
      status_ =
          Status::error("tensor {} is [{}]; the config needs [{}, 1, {}] (MLX: [{}, {}, 1]), the same in every layer",
                        conv->name, fmt::join(conv->shape, ", "), channels, taps, channels, taps);
  }

  std::vector<int> half_rows(int half) const {
    std::vector<int> rows;
    for (int head = 0; head < config_.heads; ++head)
      for (int i = 0; i < config_.head_dim; ++i) rows.push_back((2 * head + half) * config_.head_dim + i);
    return rows;
  }

  // GGUF llama files hold row 2i + s where Hugging Face has row s * half + i (model-spec 4.4); empty: same order.
  std::vector<int> rotated_rows(int heads) const {
    std::vector<int> rows;
    if (!naming_.is_gguf() || !find_family(config_.family)->gguf_rotates_pairs) return rows;
    const int half = config_.head_dim / 2;
    for (int head = 0; head < heads; ++head)
      for (int s = 0; s < 2; ++s)
        for (int i = 0; i < half; ++i) rows.push_back(head * config_.head_dim + 2 * i + s);
    return rows;
  }

  const TensorView* find(const std::string& canonical, const char* suffix) {
    const std::string name = naming_.module(canonical) + suffix;
    const TensorView* tensor = source_.find(name);
    if (tensor == nullptr) status_ = Status::error("the model lacks tensor {}; is the download complete?", name);
    return tensor;
  }

  void digest(const TensorView& tensor) {
    used_.insert(tensor.name);
    XXH3_128bits_update(hash_, tensor.name.data(), tensor.name.size());
    XXH3_128bits_update(hash_, tensor.data.data(), tensor.data.size());
  }

  using Change = std::function<void(std::vector<float>&)>;

  // A tensor of `count` floats, whatever its shape, on the device as float32, after `change`.
  const float* vector(const std::string& canonical, const char* suffix, int count, const Change& change = nullptr) {
    if (!status_) return nullptr;
    const TensorView* tensor = find(canonical, suffix);
    if (tensor == nullptr) return nullptr;
    auto reader = DenseReader::open(source_, *tensor);
    if (!reader) return fail(reader.status());
    if (static_cast<std::int64_t>(reader->out()) * reader->in() != count)
      return fail(
          Status::error("tensor {} has {} values, the config needs {}", tensor->name, tensor->elements(), count));
    digest(*tensor);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (int row = 0; row < reader->out(); ++row)
      reader->read(row, values.data() + static_cast<std::ptrdiff_t>(row) * reader->in());
    if (change) change(values);
    auto memory = backend_.allocate(values.size() * sizeof(float));
    if (!memory) return fail(memory.status());
    if (auto copied = backend_.upload((*memory)->data(), values.data(), values.size() * sizeof(float)); !copied)
      return fail(copied);
    out_.vectors_.push_back(std::move(*memory));
    return static_cast<const float*>(out_.vectors_.back()->data());
  }

  // A norm's weight. The hybrids' Hugging Face form stores w for 1 + w (model-spec 1.9).
  const float* norm(const std::string& canonical, int width) {
    const auto add_one = [](std::vector<float>& values) {
      for (float& value : values) value = 1.0f + value;
    };
    return vector(canonical.substr(0, canonical.size() - 7), ".weight", width,
                  offset_norms_ ? Change(add_one) : nullptr);
  }

  // Convolutions in Hugging Face's layout end in the number of taps, in MLX's in 1; the norms' convention goes with it.
  bool norms_are_offset() const {
    if (naming_.is_gguf() || config_.recurrent.empty()) return false;
    for (int layer = 0; layer < config_.layers; ++layer) {
      if (!config_.is_recurrent(layer)) continue;
      const TensorView* conv =
          source_.find(naming_.module(fmt::format("layers.{}.linear_attn.conv1d", layer)) + ".weight");
      return conv != nullptr && !conv->shape.empty() && conv->shape.back() != 1;
    }
    return !naming_.is_mlx();
  }

  void linear(const std::string& canonical, int out, int in, bool bias, std::span<const int> row_map, Linear& to) {
    matrix(canonical, out, in, row_map, to.weight);
    if (!bias) return;
    const std::vector<int> map(row_map.begin(), row_map.end());
    to.bias = vector(canonical, ".bias", out, [&map](std::vector<float>& values) {
      if (map.empty()) return;
      std::vector<float> ordered;
      for (const int row : map) ordered.push_back(values[static_cast<std::size_t>(row)]);
      values.swap(ordered);
    });
  }

  template <typename Reader>
  void pack(const Reader& reader, const std::string& name, int out, int in, std::span<const int> row_map,
            std::unique_ptr<Weight>& to) {
    if (reader.out() != out || reader.in() != in) {
      status_ = Status::error("{} is {} by {}, the config needs {} by {}", name, reader.out(), reader.in(), out, in);
      return;
    }
    auto packed = backend_.pack(reader, row_map);
    if (!packed) {
      status_ = packed.status();
      return;
    }
    to = std::move(*packed);
    reader.release();
  }

  void matrix(const std::string& canonical, int out, int in, std::span<const int> row_map,
              std::unique_ptr<Weight>& to) {
    if (!status_) return;
    const TensorView* tensor = find(canonical, ".weight");
    if (tensor == nullptr) return;
    digest(*tensor);
    const std::string module = naming_.module(canonical);
    const TensorView* scales = source_.find(module + ".scales");
    if (auto agreed = check_quantised(module, *tensor, scales != nullptr); !agreed) return void(fail(agreed));
    if (scales != nullptr) {
      auto reader = open_mlx(module);
      if (!reader) return void(fail(reader.status()));
      digest(*scales);
      digest(*source_.find(module + ".biases"));
      pack(**reader, module, out, in, row_map, to);
    } else if (is_affine_block(tensor->dtype)) {
      auto reader = read_gguf_blocks(source_, *tensor);
      if (!reader) return void(fail(reader.status()));
      pack(**reader, module, out, in, row_map, to);
    } else {
      auto reader = DenseReader::open(source_, *tensor);
      if (!reader) return void(fail(reader.status()));
      pack(*reader, module, out, in, row_map, to);
    }
  }

  // What the configuration says of this module against what the file holds (model-spec 3.4): its own entry is an object
  // (its parameters), true (the common ones) or false (not quantised); without one, the scales decide.
  Status check_quantised(const std::string& module, const TensorView& weight, bool scaled) const {
    const nlohmann::json& all = config_.quantization;
    if (scaled && !all.is_object())
      return Status::error("{} has scales but config.json has no \"quantization\"", module);
    if (!scaled && weight.dtype == DType::kU32)
      return Status::error("{} is quantised but the model lacks tensor {}.scales; is the download complete?", module,
                           module);
    if (!all.is_object() || !all.contains(module)) return Status::ok();
    const nlohmann::json& own = all[module];
    if (!own.is_object() && !own.is_boolean())
      return Status::error("config.json: quantization of {} must be an object, true or false, not {}", module,
                           own.dump());
    if (own == false && scaled)
      return Status::error("config.json says that {} is not quantised (false), but the file holds its scales", module);
    if (own != false && !scaled)
      return Status::error("config.json says that {} is quantised, but the model lacks tensor {}.scales", module,
                           module);
    return Status::ok();
  }

  Result<std::unique_ptr<AffineReader>> open_mlx(const std::string& module) {
    const nlohmann::json& all = config_.quantization;
    const nlohmann::json* own = all.contains(module) && all[module].is_object() ? &all[module] : &all;
    Fields fields(*own, "config.json: quantization of " + module), globals(all, "config.json: quantization");
    const std::string mode = fields.text("mode", "affine");
    const int bits = fields.integer("bits", 1, 32, globals.integer("bits", 1, 32, 4));
    const int group = fields.integer("group_size", 1, 1 << 20, globals.integer("group_size", 1, 1 << 20, 64));
    if (!fields.status()) return fields.status();
    if (!globals.status()) return globals.status();
    if (mode != "affine")
      return Status::error("{} is quantised in mode \"{}\", which is not supported; affine is", module, mode);
    return read_mlx_affine(source_, module, bits, group);
  }

  const float* fail(Status status) {
    if (status_) status_ = std::move(status);
    return nullptr;
  }

  const ModelConfig& config_;
  const TensorSource& source_;
  const Naming& naming_;
  Backend& backend_;
  XXH3_state_t* hash_;
  bool offset_norms_ = false;
  ModelWeights out_;
  Status status_;
  std::set<std::string> used_;
};

Result<ModelWeights> ModelWeights::load(const ModelConfig& config, const TensorSource& source, const Naming& naming,
                                        Backend& backend, const Progress& progress) {
  return WeightLoader(config, source, naming, backend).load(progress);
}

std::vector<std::pair<std::string, const Weight*>> ModelWeights::modules() const {
  std::vector<std::pair<std::string, const Weight*>> all = {{"embed_tokens", embedding_.get()}};
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerWeights& w = layers_[i];
    const std::pair<const char*, const Linear*> linears[] = {{"self_attn.q_proj", &w.query},
                                                             {"self_attn.q_proj (gate)", &w.query_gate},
                                                             {"self_attn.k_proj", &w.key},
                                                             {"self_attn.v_proj", &w.value},
                                                             {"self_attn.o_proj", &w.output},
                                                             {"linear_attn.in_proj_qkv", &w.delta_mixed},
                                                             {"linear_attn.in_proj_z", &w.delta_z},
                                                             {"linear_attn.in_proj_b", &w.delta_b},
                                                             {"linear_attn.in_proj_a", &w.delta_a},
                                                             {"linear_attn.out_proj", &w.delta_output},
                                                             {"mlp.gate_proj", &w.gate},
                                                             {"mlp.up_proj", &w.up},
                                                             {"mlp.down_proj", &w.down}};
    for (const auto& [name, linear] : linears)
      if (linear->weight) all.emplace_back(fmt::format("layers.{}.{}", i, name), linear->weight.get());
  }
  if (head_) all.emplace_back("lm_head", head_.get());
  return all;
}

std::size_t ModelWeights::bytes() const {
  std::size_t total = 0;
  for (const auto& [name, weight] : modules()) total += weight->bytes();
  for (const auto& vector : vectors_) total += vector->bytes();
  return total;
}

}  // namespace steadfast
