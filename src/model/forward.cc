// The one forward: x = embed; for each layer x += mixer(norm x), x += mlp(norm x); norm; head (model-spec 1.4, 2.2).
// The mixer is attention, or in a hybrid's recurrent layers Gated DeltaNet (model/delta.cc). A prompt is many rows of
// one stream, a reply one row: nothing here asks which.
#include "model/model.h"
#include "ops/attention.h"
#include "ops/delta.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace steadfast {

ModelShapes shapes_of(const ModelConfig& config, DType kv_dtype) {
  const LinearAttentionConfig& d = config.linear;
  return {{config.heads, config.kv_heads, config.head_dim, 1.0f / std::sqrt(static_cast<float>(config.head_dim))},
          config.recurrent_layers() > 0,
          {d.key_heads, d.value_heads, d.key_dim, d.value_dim, d.taps},
          kv_dtype};
}

namespace {

// Floats that `rows` rows of a part take; parts begin at multiples of 16.
std::size_t extent(int width, int rows) {
  return (static_cast<std::size_t>(width) * static_cast<std::size_t>(rows) + 15) / 16 * 16;
}

}  // namespace

std::vector<std::pair<float**, int>> Workspace::parts(const ModelConfig& config) {
  const int half = config.rope.dims / 2, value = config.linear.value_heads * config.linear.value_dim;
  const int conv = 2 * config.linear.key_heads * config.linear.key_dim + value;
  return {{&x_, config.hidden},
          {&normed_, config.hidden},
          {&query_, config.query_width()},
          {&key_, config.kv_width()},
          {&value_, config.kv_width()},
          {&mixed_, config.query_width()},
          {&gate_, config.intermediate},
          {&up_, config.intermediate},
          {&cosine_, half},
          {&sine_, half},
          {&query_gate_, config.output_gate ? config.query_width() : 0},
          {&delta_in_, conv},
          {&delta_mixed_, conv},
          {&delta_z_, value},
          {&delta_out_, value},
          {&delta_a_, config.linear.value_heads},
          {&delta_b_, config.linear.value_heads}};
}

RoundLimits round_limits(const ModelConfig& config, int rows, int logit_rows, std::size_t positions) {
  RoundLimits limits;
  limits.rows = rows;
  limits.logit_rows = logit_rows;
  limits.widest = std::max(
      {config.hidden, config.intermediate, config.query_width(), config.linear.value_heads * config.linear.value_dim});
  limits.vocab = config.vocab;
  limits.positions = positions > 0 ? positions : static_cast<std::size_t>(config.max_positions);
  limits.shapes = shapes_of(config);
  return limits;
}

std::size_t Workspace::bytes(const ModelConfig& config, int max_rows, int logit_rows) {
  std::size_t floats = static_cast<std::size_t>(logit_rows) * static_cast<std::size_t>(config.vocab) +
                       static_cast<std::size_t>(config.rope.dims / 2);
  for (const auto& [pointer, width] : Workspace().parts(config)) floats += extent(width, max_rows);
  return floats * sizeof(float);
}

Result<std::unique_ptr<Workspace>> Workspace::create(Backend& backend, const ModelConfig& config, int max_rows,
                                                     int logit_rows, std::size_t positions) {
  auto w = std::make_unique<Workspace>();
  w->max_rows_ = max_rows;
  w->logit_rows_ = logit_rows;
  auto memory = backend.allocate(bytes(config, max_rows, logit_rows));
  if (!memory) return memory.status();
  w->memory_ = std::move(*memory);
  auto* at = static_cast<float*>(w->memory_->data());
  for (const auto& [pointer, width] : w->parts(config)) {
    *pointer = at;
    at += extent(width, max_rows);
  }
  if (auto status = backend.reserve_round(round_limits(config, max_rows, logit_rows, positions)); !status)
    return status;
  w->logits_ = at;
  w->inverse_ = at + static_cast<std::size_t>(logit_rows) * static_cast<std::size_t>(config.vocab);
  std::vector<float> inverse = config.rope.inverse;
  for (float& each : inverse) each *= config.rope.position_factor;
  if (auto status = backend.upload(w->inverse_, inverse.data(), inverse.size() * sizeof(float)); !status) return status;
  return w;
}

CacheShape Model::cache_shape(DType dtype) const {
  const int recurrent = config_.recurrent_layers();
  return {config_.layers - recurrent,
          config_.kv_heads,
          config_.head_dim,
          dtype,
          recurrent,
          delta_shape(),
          backend_->delta_state_bytes(delta_shape())};
}

void Model::linear(const Round& round, const LinearInput& input, std::span<const LinearJob> jobs) const {
  if (backend_->prompt_act() == backend_->act()) return ops::linear(*backend_, input, jobs);
  for (const RoleRun& run : round.role_runs()) {
    LinearInput part = input;
    for (Matrix* each : {&part.x, &part.other, &part.made}) *each = each->part(run.first_row, run.rows);
    std::vector<LinearJob> part_jobs(jobs.begin(), jobs.end());
    for (LinearJob& job : part_jobs) {
      if (job.add != nullptr) job.add += run.first_row * job.out.stride;
      job.out = job.out.part(run.first_row, run.rows);
      job.prompt = run.prompt;
    }
    ops::linear(*backend_, part, part_jobs);
  }
}

void Model::attention_layer(const Round& round, int layer, int index, Workspace& w) const {
  const LayerWeights& weights = weights_.layers()[static_cast<std::size_t>(layer)];
  const int rows = round.rows();
  const Matrix x(w.x_, rows, config_.hidden), normed(w.normed_, rows, config_.hidden);
  const Matrix query(w.query_, rows, config_.query_width()), mixed(w.mixed_, rows, config_.query_width());
  const Matrix key(w.key_, rows, config_.kv_width()), value(w.value_, rows, config_.kv_width());
  const Matrix gate(w.query_gate_, rows, config_.query_width());
  const LinearJob jobs[] = {{weights.query.weight.get(), query, weights.query.bias, nullptr},
                            {weights.key.weight.get(), key, weights.key.bias, nullptr},
                            {weights.value.weight.get(), value, weights.value.bias, nullptr},
                            {weights.query_gate.weight.get(), gate, weights.query_gate.bias, nullptr}};
  linear(round, ops::rms_normed(x, weights.input_norm, config_.norm_eps, normed),
         std::span(jobs).first(config_.output_gate ? 4 : 3));
  const AttentionShape shape = shapes_of(config_).attention;
  std::vector<CacheView> views;
  for (const Piece& piece : round.pieces) views.push_back(piece.stream->view(index));
  const HeadNorms norms{weights.query_norm, weights.key_norm, config_.norm_eps};
  ops::rotate_and_store(*backend_, query, key, value, shape, norms, {w.cosine_, w.sine_, config_.rope.dims},
                        round.pieces, views);
  ops::attention(*backend_, query, shape, round.pieces, views, mixed);
  const LinearJob output{weights.output.weight.get(), x, weights.output.bias, x.data};
  linear(round, config_.output_gate ? ops::sigmoid_multiplied(mixed, gate, mixed) : ops::plain(mixed), output);
}

void Model::mlp(const Round& round, int layer, Workspace& w) const {
  const int rows = round.rows();
  const LayerWeights& weights = weights_.layers()[static_cast<std::size_t>(layer)];
  const Matrix x(w.x_, rows, config_.hidden), normed(w.normed_, rows, config_.hidden);
  const Matrix gate(w.gate_, rows, config_.intermediate), up(w.up_, rows, config_.intermediate);
  const LinearJob jobs[] = {{weights.gate.weight.get(), gate, weights.gate.bias, nullptr},
                            {weights.up.weight.get(), up, weights.up.bias, nullptr}};
  linear(round, ops::rms_normed(x, weights.post_norm, config_.norm_eps, normed), jobs);
  linear(round, ops::silu_multiplied(gate, up, gate), {weights.down.weight.get(), x, weights.down.bias, x.data});
}

Status Model::forward(const Round& round, Workspace& w) const {
  const int rows = round.rows();
  CHECK(rows > 0 && rows <= w.max_rows(), "forward: {} rows, workspace for {}", rows, w.max_rows());
  const Matrix x(w.x_, rows, config_.hidden);
  ops::embed(*backend_, weights_.embedding(), round.tokens, x);
  backend_->rope_table(round.positions, w.inverse_, config_.rope.dims / 2, config_.rope.magnitude, w.cosine_, w.sine_);
  int attention_index = 0, delta_index = 0;
  for (int layer = 0; layer < config_.layers; ++layer) {
    if (config_.is_recurrent(layer))
      delta_layer(round, layer, delta_index++, w);
    else
      attention_layer(round, layer, attention_index++, w);
    mlp(round, layer, w);
  }
  for (const Piece& piece : round.pieces)
    if (piece.stream->recording()) piece.stream->count_recorded(piece.first_position, piece.rows);
  const int wanted = static_cast<int>(round.logit_rows.size());
  w.final_ = Matrix(w.normed_, wanted, config_.hidden);
  if (wanted > 0) {
    ops::gather(*backend_, x, round.logit_rows, w.final_);
    ops::rms_norm(*backend_, w.final_, weights_.final_norm(), config_.norm_eps, w.final_);
  }
  return backend_->finish();
}

Result<Matrix> Model::logits(const Workspace& w, int first, int rows) const {
  CHECK(first + rows <= w.final_.rows && rows <= w.logit_rows_, "logits: rows {} to {} of {}, {} at once", first,
        first + rows, w.final_.rows, w.logit_rows_);
  const Matrix from(w.final_.row(first), rows, config_.hidden), out(w.logits_, rows, config_.vocab);
  ops::linear(*backend_, from, {&weights_.head(), out, nullptr, nullptr, /*fine=*/true});
  if (auto status = backend_->finish(); !status) return status;
  return out;
}

Status Model::head(const Workspace& w, int first, const Matrix& host) const {
  for (int row = 0; row < host.rows; row += w.logit_rows_) {
    const int part = std::min(w.logit_rows_, host.rows - row);
    auto made = logits(w, first + row, part);
    if (!made) return made.status();
    const auto bytes = static_cast<std::size_t>(part) * static_cast<std::size_t>(config_.vocab) * sizeof(float);
    if (auto status = backend_->download(host.row(row), made->data, bytes); !status) return status;
  }
  return Status::ok();
}

}  // namespace steadfast
