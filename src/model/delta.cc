// The Gated DeltaNet layer of a hybrid, and the roll-back of its states (model-spec 1.6, 1.7).
#include "ops/delta.h"
#include "model/model.h"
#include "ops/linear.h"

namespace steadfast {

DeltaShape Model::delta_shape() const {
  const LinearAttentionConfig& d = config_.linear;
  return {d.key_heads, d.value_heads, d.key_dim, d.value_dim, d.taps, weights_.tiled_heads()};
}

void Model::delta_layer(const Round& round, int layer, int index, Workspace& w) const {
  const LayerWeights& weights = weights_.layers()[static_cast<std::size_t>(layer)];
  const DeltaShape shape = delta_shape();
  const int rows = round.rows();
  const Matrix x(w.x_, rows, config_.hidden), normed(w.normed_, rows, config_.hidden);
  const Matrix in(w.delta_in_, rows, shape.conv_width()), mixed(w.delta_mixed_, rows, shape.conv_width());
  const Matrix z(w.delta_z_, rows, shape.value_width()), out(w.delta_out_, rows, shape.value_width());
  const Matrix a(w.delta_a_, rows, shape.value_heads), b(w.delta_b_, rows, shape.value_heads);
  const LinearJob jobs[] = {{weights.delta_mixed.weight.get(), in},
                            {weights.delta_z.weight.get(), z},
                            {weights.delta_b.weight.get(), b},
                            {weights.delta_a.weight.get(), a}};
  linear(round, ops::rms_normed(x, weights.input_norm, config_.norm_eps, normed), jobs);
  std::vector<DeltaState> states;
  for (const Piece& piece : round.pieces) {
    states.push_back(piece.stream->delta(index));
    if (!piece.stream->recording()) continue;
    const auto of_piece = [&](const Matrix& m) {
      return Matrix(m.row(piece.first_row), piece.rows, m.width, m.stride);
    };
    const int width = piece.stream->record_width();
    const Matrix record(piece.stream->recorded_inputs(index, piece.stream->recorded(), piece.rows), piece.rows, width);
    backend_->copy_rows(of_piece(in), record.columns(0, in.width));
    backend_->copy_rows(of_piece(a), record.columns(in.width, a.width));
    backend_->copy_rows(of_piece(b), record.columns(in.width + a.width, b.width));
  }
  ops::delta(*backend_, in, a, b, shape, weights.delta, round.pieces, states, mixed, out);
  const LinearInput gated =
      ops::gated_normed(out, z, shape.value_heads, shape.value_dim, weights.delta_norm, config_.norm_eps, out);
  linear(round, gated, {weights.delta_output.weight.get(), x, nullptr, x.data});
}

Status Model::roll_back(StreamState& stream, int kept, Workspace& w) const {
  CHECK(stream.recording() && kept >= 0 && kept <= stream.recorded(), "roll_back: {} of {} recorded rows", kept,
        stream.recorded());
  if (kept < stream.recorded()) {
    if (auto status = stream.restore(*backend_); !status) return status;
    const DeltaShape shape = delta_shape();
    int index = 0;
    for (int layer = 0; layer < config_.layers && kept > 0; ++layer) {
      if (!config_.is_recurrent(layer)) continue;
      const DeltaWeights& weights = weights_.layers()[static_cast<std::size_t>(layer)].delta;
      const Matrix record(stream.recorded_inputs(index, 0, kept), kept, stream.record_width());
      const Matrix mixed(w.delta_mixed_, kept, shape.conv_width()), out(w.delta_out_, kept, shape.value_width());
      const Matrix a = record.columns(shape.conv_width(), shape.value_heads);
      const Matrix b = record.columns(shape.conv_width() + shape.value_heads, shape.value_heads);
      const Piece piece{&stream, 0, kept, stream.record_position()};
      const DeltaState state = stream.delta(index++);
      ops::delta(*backend_, record.columns(0, shape.conv_width()), a, b, shape, weights, {&piece, 1}, {&state, 1},
                 mixed, out);
    }
  }
  stream.stop_recording();
  return backend_->finish();
}

}  // namespace steadfast
