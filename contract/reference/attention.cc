// The plain softmax in double.
#include "contract/reference/attention.h"

#include <cmath>

namespace steadfast::contract {
namespace {

struct Weights {
  std::vector<double> w;  // normed
  double error = 0;       // relative, of each
};

Weights weights_of(const KvShape& shape, Arithmetic arithmetic, const std::vector<std::vector<double>>& keys,
                   const std::vector<double>& query, std::size_t first, int position) {
  const double scale = static_cast<double>(shape.attention().scale);
  Weights result;
  double top = -INFINITY, lowest = INFINITY, products = 0;
  for (int p = 0; p <= position; ++p) {
    double dot = 0, size = 0;
    for (std::size_t d = 0; d < query.size(); ++d) {
      const double term = query[d] * keys[static_cast<std::size_t>(p)][first + d];
      dot += term;
      size += std::fabs(term);
    }
    result.w.push_back(dot * scale);
    products = std::max(products, size * scale);
    top = std::max(top, dot * scale);
    lowest = std::min(lowest, dot * scale);
  }
  double sum = 0;
  for (double& w : result.w) sum += w = std::exp(w - top);
  for (double& w : result.w) w /= sum;
  const double largest = std::max(std::fabs(top), std::fabs(lowest)) + 8;  // the reference may lie 8 (log 2) beside
  const double dim = shape.dim;
  if (is_cuda(arithmetic))
    result.error = 0x1p-8 + 0x1p-22 + std::expm1((dim / 16 + 1) * 0x1p-22 * products + 3 * 2 * kRoundoff * largest);
  else
    result.error = 0x1p-22 + std::expm1(gamma_n(dim + 2) * products + 2 * kRoundoff * (top - lowest));
  return result;
}

}  // namespace

AttentionRow attention_row(const KvShape& shape, Arithmetic arithmetic, const std::vector<std::vector<double>>& keys,
                           const std::vector<std::vector<double>>& values, const float* query, int head, int position) {
  std::vector<double> q(query, query + shape.dim);
  if (is_cuda(arithmetic))
    for (double& x : q) x = static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(x))));
  const auto first = static_cast<std::size_t>(head / (shape.heads / shape.kv_heads) * shape.dim);
  const Weights weights = weights_of(shape, arithmetic, keys, q, first, position);
  const double spans = position / 512 + 1;
  const double sums = is_cuda(arithmetic) ? (std::min(position, 1024) / 16 + 1 + 4 * spans + 8) * 0x1p-22
                                          : gamma_n(std::min(position, 512) + 1 + 6 * spans + 20);
  AttentionRow row;
  for (std::size_t d = 0; d < q.size(); ++d) {
    double o = 0, size = 0, spread = 0;
    for (std::size_t p = 0; p < weights.w.size(); ++p) {
      const double v = values[p][first + d];
      o += weights.w[p] * v;
      size += weights.w[p] * std::fabs(v);
    }
    for (std::size_t p = 0; p < weights.w.size(); ++p) spread += weights.w[p] * std::fabs(values[p][first + d] - o);
    row.exact.push_back(o);
    row.bound.push_back(weights.error / (1 - weights.error) * spread + sums * (size + std::fabs(o)) + 1e-30);
  }
  return row;
}

}  // namespace steadfast::contract
