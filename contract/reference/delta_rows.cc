// Convolution, silu, norms and gates of one head.
#include "contract/reference/delta_rows.h"

#include <cmath>

#include "contract/random_weights.h"

namespace steadfast::contract {
namespace {

double length(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

// Channels [first, first + count) of a row behind the convolution and silu.
DeltaVector convolved(const DeltaInputs& in, int row, int first, int count, bool cuda) {
  const int width = in.shape.conv_width(), taps = in.shape.taps;
  DeltaVector y;
  for (int c = first; c < first + count; ++c) {
    double sum = 0, size = 0;
    for (int tap = 0; tap < taps; ++tap) {
      const int from = row - (taps - 1) + tap;
      if (from < 0) continue;
      const double term =
          static_cast<double>(in.conv[static_cast<std::size_t>(tap * width + c)]) *
          static_cast<double>(
              in.x[static_cast<std::size_t>(from) * static_cast<std::size_t>(width) + static_cast<std::size_t>(c)]);
      sum += term;
      size += std::fabs(term);
    }
    const double value = sum / (1 + std::exp(-sum));
    // CUDA: the card's own 2^x and 1 / x, each within 2^-22, and the rounding of the exponent.
    const double silu = cuda ? 3 * 0x1p-22 + std::fabs(sum) * 0x1p-22 : gamma_n(7);
    y.x.push_back(value);
    y.error.push_back(1.1 * gamma_n(taps + 1) * size + silu * std::fabs(value) + 1e-36);
  }
  return y;
}

void norm(DeltaVector& y, double scale, bool cuda) {
  double squares = 0, moved = 0;
  for (std::size_t i = 0; i < y.x.size(); ++i) squares += y.x[i] * y.x[i], moved += std::fabs(y.x[i]) * y.error[i];
  const double n = std::sqrt(squares + 1e-6), factor = scale / n;
  const double relative = gamma_n(static_cast<double>(y.x.size()) / 16 + 40) + (cuda ? 0x1p-21 : 0) + moved / (n * n);
  for (std::size_t i = 0; i < y.x.size(); ++i) {
    y.x[i] *= factor;
    y.error[i] = y.error[i] * factor + std::fabs(y.x[i]) * relative;
  }
}

// To bf16: an element's error is the step that its own error may make it miss.
void round(DeltaVector& y) {
  for (std::size_t i = 0; i < y.x.size(); ++i) {
    const double low = round_bf16(y.x[i] - y.error[i]), high = round_bf16(y.x[i] + y.error[i]);
    y.x[i] = round_bf16(y.x[i]);
    y.error[i] = high - low;
  }
}

void gates(const DeltaInputs& in, int row, int head, bool cuda, DeltaRow& to) {
  const auto at =
      static_cast<std::size_t>(row) * static_cast<std::size_t>(in.shape.value_heads) + static_cast<std::size_t>(head);
  const auto h = static_cast<std::size_t>(head);
  const double a = static_cast<double>(in.a[at]) + static_cast<double>(in.dt_bias[h]);
  const double softplus = a > 30 ? a : std::log1p(std::exp(a)), weight = static_cast<double>(in.a_weight[h]);
  to.log = weight * softplus;
  // The sum is rounded in float32 on both; CUDA goes on in float32.
  to.log_error = std::fabs(weight) * (kRoundoff * std::fabs(a) + (cuda ? 0x1p-21 * softplus : 1e-13 * softplus));
  to.beta = 1 / (1 + std::exp(-static_cast<double>(in.b[at])));
  to.beta_error = to.beta * (cuda ? gamma_n(7) : kRoundoff);
}

}  // namespace

double DeltaVector::norm() const { return length(x); }
double DeltaVector::error_norm() const { return length(error); }

std::vector<DeltaRow> delta_rows(const DeltaInputs& in, Arithmetic arithmetic, int head) {
  const DeltaShape& s = in.shape;
  const bool cuda = is_cuda(arithmetic);
  const int key_head = s.tiled ? head % s.key_heads : head / (s.value_heads / s.key_heads);
  std::vector<DeltaRow> rows(static_cast<std::size_t>(in.rows));
  for (int row = 0; row < in.rows; ++row) {
    DeltaRow& to = rows[static_cast<std::size_t>(row)];
    to.query = convolved(in, row, key_head * s.key_dim, s.key_dim, cuda);
    to.key = convolved(in, row, s.key_width() + key_head * s.key_dim, s.key_dim, cuda);
    to.value = convolved(in, row, 2 * s.key_width() + head * s.value_dim, s.value_dim, cuda);
    norm(to.query, 1 / std::sqrt(static_cast<double>(s.key_dim)), cuda);
    norm(to.key, 1, cuda);
    if (cuda) round(to.query), round(to.key), round(to.value);
    gates(in, row, head, cuda, to);
  }
  return rows;
}

}  // namespace steadfast::contract
