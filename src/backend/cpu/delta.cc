// Gated DeltaNet on the CPU. Units of work: rows of channels for the convolution, one head of one stream's piece for
// the recurrence (its rows in order, the state staying in cache), rows for the norms.
#include <cstring>

#include "backend/cpu/cpu_backend_impl.h"
#include "base/exact_math.h"

namespace steadfast::cpu {
namespace {

constexpr int kMaxTaps = 16;

// decay = e^(a_weight * softplus(a + dt_bias)), a_weight < 0: a number in (0, 1].
float decay_of(float a, float dt_bias, float a_weight) {
  const double x = static_cast<double>(a + dt_bias);
  const double softplus = x > 20 ? x : exact_log1p(exact_exp(x));
  return static_cast<float>(exact_exp(static_cast<double>(a_weight) * softplus));
}

float sigmoid(float x) { return static_cast<float>(1.0 / (1.0 + exact_exp(-static_cast<double>(x)))); }

}  // namespace

void CpuBackend::delta_conv(const Matrix& x, const DeltaShape& shape, const DeltaWeights& weights,
                            std::span<const Piece> pieces, std::span<const DeltaState> states, const Matrix& out) {
  const int history = shape.taps - 1, width = shape.conv_width();
  CHECK(shape.taps >= 1 && shape.taps <= kMaxTaps, "delta_conv: {} taps", shape.taps);
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const Piece& piece = pieces[p];
    float* const state = states[p].conv;
    // Row r of the piece, or of the history before it.
    const auto input = [&](int r) -> const float* {
      return r < 0 ? state + static_cast<std::ptrdiff_t>(history + r) * width : x.row(piece.first_row + r);
    };
    over_rows(team_, piece.rows, [&](int row) {
      const float* taps[kMaxTaps];
      for (int j = 0; j < shape.taps; ++j) taps[j] = input(row - history + j);
      kernels_->conv_silu(taps, weights.conv, shape.taps, width, out.row(piece.first_row + row));
    });
    for (int j = 0; j < history; ++j)  // oldest first: no row is overwritten before it is read
      std::memmove(state + static_cast<std::ptrdiff_t>(j) * width, input(piece.rows - history + j),
                   static_cast<std::size_t>(width) * sizeof(float));
  }
}

void CpuBackend::delta_rule(const Matrix& mixed, const Matrix& a, const Matrix& b, const DeltaShape& shape,
                            const DeltaWeights& weights, std::span<const Piece> pieces,
                            std::span<const DeltaState> states, const Matrix& out) {
  CHECK(shape.key_dim % kLanes == 0 && shape.value_dim <= kMaxValueDim, "delta_rule: dims {} and {}", shape.key_dim,
        shape.value_dim);
  const float query_scale = 1.0f / std::sqrt(static_cast<float>(shape.key_dim));
  over_rows(team_, mixed.rows, [&](int row) {
    for (int head = 0; head < shape.key_heads; ++head) {
      kernels_->l2_norm(mixed.row(row) + head * shape.key_dim, shape.key_dim, query_scale);
      kernels_->l2_norm(mixed.row(row) + shape.key_width() + head * shape.key_dim, shape.key_dim, 1.0f);
    }
  });
  const int heads = shape.value_heads;
  team_.run(static_cast<int>(pieces.size()) * heads, [&](int unit, int) {
    const Piece& piece = pieces[static_cast<std::size_t>(unit / heads)];
    const int head = unit % heads;
    const int key_head = shape.tiled ? head % shape.key_heads : head / (heads / shape.key_heads);
    float* state = states[static_cast<std::size_t>(unit / heads)].state +
                   static_cast<std::ptrdiff_t>(head) * shape.key_dim * shape.padded_value_dim();
    for (int row = piece.first_row; row < piece.first_row + piece.rows; ++row) {
      DeltaStep step;
      step.query = mixed.row(row) + key_head * shape.key_dim;
      step.key = mixed.row(row) + shape.key_width() + key_head * shape.key_dim;
      step.value = mixed.row(row) + 2 * shape.key_width() + head * shape.value_dim;
      step.out = out.row(row) + head * shape.value_dim;
      step.decay = decay_of(a.row(row)[head], weights.dt_bias[head], weights.a[head]);
      step.beta = sigmoid(b.row(row)[head]);
      kernels_->delta_step(step, shape.key_dim, shape.value_dim, state);
    }
  });
}

void CpuBackend::gated_norm(const Matrix& x, const Matrix& gate, int heads, int dim, const float* weight, float eps,
                            const Matrix& out) {
  over_rows(team_, x.rows, [&](int row) {
    for (int head = 0; head < heads; ++head)
      kernels_->rms_norm(x.row(row) + head * dim, weight, dim, eps, out.row(row) + head * dim);
    kernels_->silu_mul(gate.row(row), out.row(row), x.width, out.row(row));
  });
}

void CpuBackend::sigmoid_mul(const Matrix& x, const Matrix& gate, const Matrix& out) {
  over_rows(team_, x.rows, [&](int row) { kernels_->sigmoid_mul(x.row(row), gate.row(row), x.width, out.row(row)); });
}

}  // namespace steadfast::cpu
