// Gated DeltaNet (model-spec 1.6): convolution, recurrence and gated norm of a round's rows.
// delta_conv: out = silu(causal depthwise convolution of x), both [rows, conv_width]; moves each stream's conv state
// on. delta_rule: mixed = the convolution's rows [queries | keys | values]; its queries and keys are normed in place
//   (x / sqrt(sum x^2 + 1e-6), queries times key_dim^-0.5). beta = sigmoid(b), decay = e^(a_weight * softplus(a +
//   dt_bias)). For each row in position order: S = decay S; d = beta (v - S^T k); S += k d^T; out = S^T q. out [rows,
//   value_width].
// delta: both in one, with room for the rows between them in `mixed`; where a backend computes it in one go (CUDA:
// backend/cuda/delta.h states its arithmetic), what `mixed` and the states hold is its own affair.
// gated_norm: out = (x * (1 / sqrt(mean x^2 + eps)) * weight) * silu(gate) over each head; out may be x.
// Pieces carry the absolute positions of their rows. Arithmetic on the CPU: the step form in fp32; sums are chains over
// key dims ascending; gates in double by base/exact_math.
#pragma once

#include "backend/backend.h"

namespace steadfast::ops {

inline void delta_conv(Backend& backend, const Matrix& x, const DeltaShape& shape, const DeltaWeights& weights,
                       std::span<const Piece> pieces, std::span<const DeltaState> states, const Matrix& out) {
  CHECK(x.width == shape.conv_width() && out.width == x.width && out.rows == x.rows, "delta_conv: rows of {} for {}",
        x.width, shape.conv_width());
  CHECK(pieces.size() == states.size(), "delta_conv: {} pieces, {} states", pieces.size(), states.size());
  backend.delta_conv(x, shape, weights, pieces, states, out);
}

inline void delta_rule(Backend& backend, const Matrix& mixed, const Matrix& a, const Matrix& b, const DeltaShape& shape,
                       const DeltaWeights& weights, std::span<const Piece> pieces, std::span<const DeltaState> states,
                       const Matrix& out) {
  CHECK(mixed.width == shape.conv_width() && out.width == shape.value_width(), "delta_rule: rows of {} and {}",
        mixed.width, out.width);
  CHECK(a.width == shape.value_heads && b.width == shape.value_heads, "delta_rule: gates of {} and {} heads", a.width,
        b.width);
  CHECK(pieces.size() == states.size(), "delta_rule: {} pieces, {} states", pieces.size(), states.size());
  backend.delta_rule(mixed, a, b, shape, weights, pieces, states, out);
}

inline void delta(Backend& backend, const Matrix& x, const Matrix& a, const Matrix& b, const DeltaShape& shape,
                  const DeltaWeights& weights, std::span<const Piece> pieces, std::span<const DeltaState> states,
                  const Matrix& mixed, const Matrix& out) {
  CHECK(x.width == shape.conv_width() && mixed.width == x.width && mixed.rows == x.rows &&
            out.width == shape.value_width() && out.rows == x.rows,
        "delta: rows of {}, {} and {}", x.width, mixed.width, out.width);
  CHECK(a.width == shape.value_heads && b.width == shape.value_heads, "delta: gates of {} and {} heads", a.width,
        b.width);
  CHECK(pieces.size() == states.size(), "delta: {} pieces, {} states", pieces.size(), states.size());
  backend.delta(x, a, b, shape, weights, pieces, states, mixed, out);
}

inline void gated_norm(Backend& backend, const Matrix& x, const Matrix& gate, int heads, int dim, const float* weight,
                       float eps, const Matrix& out) {
  CHECK(x.width == heads * dim && gate.width == x.width && out.width == x.width,
        "gated_norm: {} heads of {} in rows of {}", heads, dim, x.width);
  backend.gated_norm(x, gate, heads, dim, weight, eps, out);
}

// out = x * sigmoid(gate); out may be x.
inline void sigmoid_mul(Backend& backend, const Matrix& x, const Matrix& gate, const Matrix& out) {
  CHECK(x.rows == gate.rows && x.width == gate.width && out.width == x.width, "sigmoid_mul: {} and {} wide", x.width,
        gate.width);
  backend.sigmoid_mul(x, gate, out);
}

}  // namespace steadfast::ops
