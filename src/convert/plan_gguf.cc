// GGUF's tensors under MLX's names, with Hugging Face's order of rows and columns: llama's rotated pairs
// (model-spec 4.4) and the hybrids' tiled value heads (model-spec 1.10) are undone. The MTP block becomes mtp.*.
#include <set>

#include "convert/plan.h"
#include "model/families/family.h"
#include "model/naming.h"

namespace steadfast {
namespace {

class GgufPlanner {
 public:
  GgufPlanner(const GgufFile& file, const ModelConfig& config)
      : file_(file),
        config_(config),
        hybrid_(!config.recurrent.empty()),
        naming_(Naming::gguf(hybrid_)),
        prefix_(hybrid_ ? "language_model." : "") {}

  Result<ConversionPlan> plan() {
    const std::string body = prefix_ + "model.";
    matrix("embed_tokens", body + "embed_tokens", config_.vocab, config_.hidden);
    for (int layer = 0; layer < config_.layers; ++layer) {
      const std::string from = fmt::format("layers.{}.", layer);
      add_layer(from, body + from, config_.is_recurrent(layer));
    }
    vector("norm", ".weight", body + "norm", config_.hidden);
    if (!config_.tied) matrix("lm_head", prefix_ + "lm_head", config_.vocab, config_.hidden);
    const std::string mtp = fmt::format("blk.{}.nextn.", config_.layers);
    if (hybrid_ && file_.find(mtp + "eh_proj.weight") != nullptr) add_mtp(mtp);
    if (!status_) return status_;
    used_.insert("rope_freqs.weight");  // config.json says it
    for (const std::string& name : file_.names())
      if (!used_.contains(name))
        plan_.notes.push_back(fmt::format("tensor {} has no place in the result and is left out", name));
    return std::move(plan_);
  }

 private:
  using Indices = std::vector<int>;

  void add_layer(const std::string& from, const std::string& to, bool recurrent) {
    const int hidden = config_.hidden, inner = config_.intermediate;
    vector(from + "input_layernorm", ".weight", to + "input_layernorm", hidden);
    vector(from + "post_attention_layernorm", ".weight", to + "post_attention_layernorm", hidden);
    if (recurrent)
      add_delta(from + "linear_attn.", to + "linear_attn.");
    else
      add_attention(from + "self_attn.", to + "self_attn.");
    linear(from + "mlp.gate_proj", to + "mlp.gate_proj", inner, hidden, config_.mlp_bias);
    linear(from + "mlp.up_proj", to + "mlp.up_proj", inner, hidden, config_.mlp_bias);
    linear(from + "mlp.down_proj", to + "mlp.down_proj", hidden, inner, config_.mlp_bias);
  }

  void add_attention(const std::string& from, const std::string& to) {
    const int hidden = config_.hidden, query = config_.query_width(), kv = config_.kv_width();
    const int query_rows = config_.output_gate ? 2 * query : query;
    if (config_.qk_norm) {
      vector(from + "q_norm", ".weight", to + "q_norm", config_.head_dim);
      vector(from + "k_norm", ".weight", to + "k_norm", config_.head_dim);
    }
    linear(from + "q_proj", to + "q_proj", query_rows, hidden, config_.qkv_bias, rotated(config_.heads));
    linear(from + "k_proj", to + "k_proj", kv, hidden, config_.qkv_bias, rotated(config_.kv_heads));
    linear(from + "v_proj", to + "v_proj", kv, hidden, config_.qkv_bias);
    linear(from + "o_proj", to + "o_proj", hidden, query, config_.output_bias);
  }

  void add_delta(const std::string& from, const std::string& to) {
    const LinearAttentionConfig& d = config_.linear;
    const int hidden = config_.hidden, keys = 2 * d.key_heads * d.key_dim, values = d.value_heads * d.value_dim;
    const Indices heads = head_order(), mixed = heads.empty() ? Indices{} : rows_of(heads, d.value_dim, keys);
    const Indices value_rows = rows_of(heads, d.value_dim, 0);
    linear(from + "in_proj_qkv", to + "in_proj_qkv", keys + values, hidden, false, mixed);
    linear(from + "in_proj_z", to + "in_proj_z", values, hidden, false, value_rows);
    linear(from + "in_proj_b", to + "in_proj_b", d.value_heads, hidden, false, heads);
    linear(from + "in_proj_a", to + "in_proj_a", d.value_heads, hidden, false, heads);
    if (TensorJob* out = matrix(from + "out_proj", to + "out_proj", hidden, values)) {
      out->columns = heads;
      out->column_block = d.value_dim;
    }
    vector(from + "norm", ".weight", to + "norm", d.value_dim);
    vector(from + "dt_bias", "", to + "dt_bias", d.value_heads, heads);
    if (TensorJob* a = vector(from + "A_log", "", to + "A_log", d.value_heads, heads))
      a->change = Change::kLogOfNegative;
    if (TensorJob* conv = add(from + "conv1d", ".weight", to + "conv1d", {keys + values, d.taps}, mixed))
      conv->shape.push_back(1);
  }

  void add_mtp(const std::string& block) {
    const std::string to = prefix_ + "mtp.", layer = fmt::format("layers.{}.", config_.layers);
    const int hidden = config_.hidden;
    if (TensorJob* fc = add_named(block + "eh_proj.weight", to + "fc", ".weight", {hidden, 2 * hidden}, {}))
      fc->is_matrix = true;
    add_named(block + "enorm.weight", to + "pre_fc_norm_embedding", ".weight", {hidden}, {});
    add_named(block + "hnorm.weight", to + "pre_fc_norm_hidden", ".weight", {hidden}, {});
    add_named(block + "shared_head_norm.weight", to + "norm", ".weight", {hidden}, {});
    add_layer(layer, to + "layers.0.", false);
  }

  // Hugging Face's value head kh * repeats + r is GGUF's r * key_heads + kh; empty: the same order.
  Indices head_order() const {
    const int repeats = config_.linear.value_heads / config_.linear.key_heads;
    Indices order;
    if (repeats == 1 || config_.linear.key_heads == 1) return order;
    for (int key = 0; key < config_.linear.key_heads; ++key)
      for (int r = 0; r < repeats; ++r) order.push_back(r * config_.linear.key_heads + key);
    return order;
  }

  // `before` rows as they are, then each head's `width` rows.
  static Indices rows_of(const Indices& heads, int width, int before) {
    Indices rows;
    for (int i = 0; i < before; ++i) rows.push_back(i);
    for (const int head : heads)
      for (int i = 0; i < width; ++i) rows.push_back(before + head * width + i);
    return rows;
  }

  // Hugging Face's row s * half + i of a head is row 2i + s in llama's GGUF files; empty: the same order.
  Indices rotated(int heads) const {
    Indices rows;
    if (!find_family(config_.family)->gguf_rotates_pairs) return rows;
    const int half = config_.head_dim / 2;
    for (int head = 0; head < heads; ++head)
      for (int s = 0; s < 2; ++s)
        for (int i = 0; i < half; ++i) rows.push_back(head * config_.head_dim + 2 * i + s);
    return rows;
  }

  void linear(const std::string& from, const std::string& to, int out, int in, bool bias, const Indices& rows = {}) {
    if (TensorJob* job = matrix(from, to, out, in)) job->rows = rows;
    if (bias) vector(from, ".bias", to, out, rows);
  }

  TensorJob* matrix(const std::string& from, const std::string& to, int out, int in) {
    TensorJob* job = add(from, ".weight", to, {out, in}, {});
    if (job != nullptr) job->is_matrix = true;
    return job;
  }

  TensorJob* vector(const std::string& from, const char* suffix, const std::string& to, int count,
                    const Indices& rows = {}) {
    return add(from, suffix, to, {count}, rows);
  }

  TensorJob* add(const std::string& from, const char* suffix, const std::string& to, std::vector<std::int64_t> shape,
                 const Indices& rows) {
    return add_named(naming_.module(from) + suffix, to, suffix, std::move(shape), rows);
  }

  TensorJob* add_named(const std::string& name, const std::string& module, const char* suffix,
                       std::vector<std::int64_t> shape, const Indices& rows) {
    if (!status_) return nullptr;
    const TensorView* tensor = file_.find(name);
    if (tensor == nullptr)
      status_ = Status::error("the model lacks tensor {}; is the download complete?", name);
    else if (tensor->shape != shape)
      status_ = Status::error("tensor {} has shape [{}], the metadata needs [{}]", name, fmt::join(tensor->shape, ", "),
                              fmt::join(shape, ", "));
    if (!status_) return nullptr;
    used_.insert(name);
    TensorJob job;
    job.module = module;
    job.suffix = suffix;
    job.source = tensor;
    job.shape = std::move(shape);
    job.rows = rows;
    plan_.jobs.push_back(std::move(job));
    return &plan_.jobs.back();
  }

  const GgufFile& file_;
  const ModelConfig& config_;
  bool hybrid_;
  Naming naming_;
  std::string prefix_;
  ConversionPlan plan_;
  std::set<std::string> used_;
  Status status_;
};

}  // namespace

Result<ConversionPlan> plan_gguf(const GgufFile& file, const ModelConfig& config) {
  return GgufPlanner(file, config).plan();
}

}  // namespace steadfast
