// The one forward: x = embed; for each layer x += mixer(norm x), x += mlp(norm x); norm; head (model-spec 1.4, 2.2).
// The mixer is attention, or in a hybrid's recurrent layers Gated DeltaNet (model/delta.cc). A prompt is many rows of
// one stream, a reply one row: nothing here asks which.
#include "model/model.h"
#include "model/rope.h"
#include "ops/attention.h"
#include "ops/delta.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace steadfast {

Result<std::unique_ptr<Workspace>> Workspace::create(Backend& backend, const ModelConfig& config, int max_rows) {
  auto w = std::make_unique<Workspace>();
  w->max_rows_ = max_rows;
  const int half = config.rope.dims / 2, value = config.linear.value_heads * config.linear.value_dim;
  const int conv = 2 * config.linear.key_heads * config.linear.key_dim + value;
  const std::pair<float**, int> parts[] = {{&w->x_, config.hidden},
                                           {&w->normed_, config.hidden},
                                           {&w->query_, config.query_width()},
                                           {&w->key_, config.kv_width()},
                                           {&w->value_, config.kv_width()},
                                           {&w->mixed_, config.query_width()},
                                           {&w->gate_, config.intermediate},
                                           {&w->up_, config.intermediate},
                                           {&w->cosine_, half},
                                           {&w->sine_, half},
                                           {&w->query_gate_, config.output_gate ? config.query_width() : 0},
                                           {&w->delta_in_, conv},
                                           {&w->delta_mixed_, conv},
                                           {&w->delta_z_, value},
                                           {&w->delta_out_, value},
                                           {&w->delta_a_, config.linear.value_heads},
                                           {&w->delta_b_, config.linear.value_heads}};
  constexpr std::size_t kAlign = 16;
  std::size_t floats = 0;
  const auto extent = [&](int width) {
    return (static_cast<std::size_t>(width) * static_cast<std::size_t>(max_rows) + kAlign - 1) / kAlign * kAlign;
  };
  for (const auto& [pointer, width] : parts) floats += extent(width);
  auto memory = backend.allocate(floats * sizeof(float));
  if (!memory) return memory.status();
  w->memory_ = std::move(*memory);
  auto* at = static_cast<float*>(w->memory_->data());
  for (const auto& [pointer, width] : parts) {
    *pointer = at;
    at += extent(width);
  }
  w->cosine_host_.resize(static_cast<std::size_t>(max_rows) * static_cast<std::size_t>(half));
  w->sine_host_.resize(w->cosine_host_.size());
  return w;
}

CacheShape Model::cache_shape(DType dtype) const {
  const int recurrent = config_.recurrent_layers();
  return {config_.layers - recurrent, config_.kv_heads, config_.head_dim, dtype, recurrent, delta_shape()};
}

void Model::attention_layer(const Round& round, int layer, int index, Workspace& w) const {
  const LayerWeights& weights = weights_.layers()[static_cast<std::size_t>(layer)];
  const int rows = round.rows();
  const Matrix x(w.x_, rows, config_.hidden), normed(w.normed_, rows, config_.hidden);
  const Matrix query(w.query_, rows, config_.query_width()), mixed(w.mixed_, rows, config_.query_width());
  const Matrix key(w.key_, rows, config_.kv_width()), value(w.value_, rows, config_.kv_width());
  ops::rms_norm(*backend_, x, weights.input_norm, config_.norm_eps, normed);
  const Matrix gate(w.query_gate_, rows, config_.query_width());
  const LinearJob jobs[] = {{weights.query.weight.get(), query, weights.query.bias, nullptr},
                            {weights.key.weight.get(), key, weights.key.bias, nullptr},
                            {weights.value.weight.get(), value, weights.value.bias, nullptr},
                            {weights.query_gate.weight.get(), gate, weights.query_gate.bias, nullptr}};
  ops::linear(*backend_, normed, std::span(jobs).first(config_.output_gate ? 4 : 3));
  if (config_.qk_norm) {
    ops::head_norm(*backend_, query, config_.heads, config_.head_dim, weights.query_norm, config_.norm_eps);
    ops::head_norm(*backend_, key, config_.kv_heads, config_.head_dim, weights.key_norm, config_.norm_eps);
  }
  const RopeTable table{w.cosine_, w.sine_, config_.rope.dims};
  ops::rope(*backend_, query, config_.heads, config_.head_dim, table);
  ops::rope(*backend_, key, config_.kv_heads, config_.head_dim, table);
  std::vector<CacheView> views;
  for (const Piece& piece : round.pieces) {
    views.push_back(piece.stream->view(index));
    const auto of_piece = [&](const Matrix& m) {
      return Matrix(m.row(piece.first_row), piece.rows, m.width, m.stride);
    };
    ops::store_kv(*backend_, of_piece(key), of_piece(value), views.back(), piece.first_position);
  }
  const AttentionShape shape{config_.heads, config_.kv_heads, config_.head_dim,
                             1.0f / std::sqrt(static_cast<float>(config_.head_dim))};
  ops::attention(*backend_, query, shape, round.pieces, views, mixed);
  if (config_.output_gate) ops::sigmoid_mul(*backend_, mixed, gate, mixed);
  ops::linear(*backend_, mixed, {weights.output.weight.get(), x, weights.output.bias, x.data});
}

void Model::mlp(int layer, int rows, Workspace& w) const {
  const LayerWeights& weights = weights_.layers()[static_cast<std::size_t>(layer)];
  const Matrix x(w.x_, rows, config_.hidden), normed(w.normed_, rows, config_.hidden);
  const Matrix gate(w.gate_, rows, config_.intermediate), up(w.up_, rows, config_.intermediate);
  ops::rms_norm(*backend_, x, weights.post_norm, config_.norm_eps, normed);
  const LinearJob jobs[] = {{weights.gate.weight.get(), gate, weights.gate.bias, nullptr},
                            {weights.up.weight.get(), up, weights.up.bias, nullptr}};
  ops::linear(*backend_, normed, jobs);
  ops::silu_mul(*backend_, gate, up, gate);
  ops::linear(*backend_, gate, {weights.down.weight.get(), x, weights.down.bias, x.data});
}

Status Model::forward(const Round& round, Workspace& w) const {
  const int rows = round.rows();
  CHECK(rows > 0 && rows <= w.max_rows(), "forward: {} rows, workspace for {}", rows, w.max_rows());
  const Matrix x(w.x_, rows, config_.hidden);
  ops::embed(*backend_, weights_.embedding(), round.tokens, x);
  fill_rope(config_.rope, round.positions.data(), rows, w.cosine_host_.data(), w.sine_host_.data());
  const std::size_t table_bytes = static_cast<std::size_t>(rows) * config_.rope.inverse.size() * sizeof(float);
  if (auto status = backend_->upload(w.cosine_, w.cosine_host_.data(), table_bytes); !status) return status;
  if (auto status = backend_->upload(w.sine_, w.sine_host_.data(), table_bytes); !status) return status;
  int attention_index = 0, delta_index = 0;
  for (int layer = 0; layer < config_.layers; ++layer) {
    if (config_.is_recurrent(layer))
      delta_layer(round, layer, delta_index++, w);
    else
      attention_layer(round, layer, attention_index++, w);
    mlp(layer, rows, w);
  }
  for (const Piece& piece : round.pieces)
    if (piece.stream->recording()) piece.stream->count_recorded(piece.rows);
  const int wanted = static_cast<int>(round.logit_rows.size());
  w.final_ = Matrix(w.normed_, wanted, config_.hidden);
  if (wanted == 0) return Status::ok();
  ops::gather(*backend_, x, round.logit_rows, w.final_);
  ops::rms_norm(*backend_, w.final_, weights_.final_norm(), config_.norm_eps, w.final_);
  return Status::ok();
}

void Model::head(const Workspace& workspace, int first, const Matrix& out) const {
  const Matrix rows(workspace.final_.row(first), out.rows, config_.hidden);
  ops::linear(*backend_, rows, {&weights_.head(), out, nullptr, nullptr, /*fine=*/true});
}

}  // namespace steadfast
