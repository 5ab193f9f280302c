// A row changes a column s of the state to decay (I - beta k k^T) s + beta v k. That matrix is symmetric with
// eigenvalues in [0, 1], as |k| <= 1 and beta <= 1: in the 2-norm an old error never grows, and each row adds its own
// roundings.
#include "delta_bound.h"

#include <cmath>

namespace steadfast::test {
namespace {

std::vector<double> normed(const float* x, int n, double scale) {
  double sum = 1e-6;
  for (int i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  std::vector<double> y;
  for (int i = 0; i < n; ++i) y.push_back(static_cast<double>(x[i]) / std::sqrt(sum) * scale);
  return y;
}

double norm_of(const std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

struct Sum {
  double value = 0, size = 0;  // size: of the terms' magnitudes
};

Sum product(const std::vector<double>& a, const std::vector<double>& b) {
  Sum sum;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum.value += a[i] * b[i];
    sum.size += std::fabs(a[i] * b[i]);
  }
  return sum;
}

constexpr double kSecondOrder = 1.01;  // products of errors, which are below a thousandth of the errors

struct Gate {
  double value, error;
};

// e^g through a = softplus^-1(-g), and beta through b = sigmoid^-1(beta), as DeltaRun gives them: rounded once each.
Gate decay_of(double g) {
  const double a = std::log(std::expm1(-g)), slope = -std::expm1(g), decay = std::exp(g);
  return {decay, decay * (1.01 * kUnit * std::fabs(a) * slope + 2 * kUnit)};
}

Gate beta_of(double beta) {
  const double b = std::log(beta / (1 - beta));
  return {beta, 1.01 * kUnit * (beta * (1 - beta) * std::fabs(b) + 2 * beta)};
}

}  // namespace

DeltaBound bound_of(const DeltaCase& c) {
  const int dk = c.shape.key_dim, dv = c.shape.value_dim, heads = c.shape.value_heads;
  const double of_norm = norm_error(dk), of_sum = of_norm + gamma_n(dk + 1);
  DeltaBound bound;
  bound.out.resize(c.v.size());
  bound.state.resize(c.state.size());
  for (int head = 0; head < heads; ++head) {
    const int key_head = head / (heads / c.shape.key_heads);
    const auto state_at = [&](int i, int j) { return static_cast<std::size_t>((head * dk + i) * dv + j); };
    for (int j = 0; j < dv; ++j) {  // value dims do not meet
      std::vector<double> s;
      for (int i = 0; i < dk; ++i) s.push_back(static_cast<double>(c.state[state_at(i, j)]));
      double error = 0;  // of s, in the 2-norm
      for (int t = 0; t < c.rows; ++t) {
        const auto at = static_cast<std::size_t>(t * heads + head),
                   value_at = at * static_cast<std::size_t>(dv) + static_cast<std::size_t>(j);
        const auto key = static_cast<std::ptrdiff_t>(t * c.shape.key_heads + key_head) * dk;
        const auto q = normed(c.q.data() + key, dk, 1 / std::sqrt(static_cast<double>(dk))),
                   k = normed(c.k.data() + key, dk, 1);
        const Gate decay = decay_of(static_cast<double>(c.g[at])), beta = beta_of(static_cast<double>(c.beta[at]));
        const double decay_error = norm_of(s) * (decay.error + kUnit * decay.value);
        for (double& value : s) value *= decay.value;
        const Sum memory = product(s, k);
        const double difference = static_cast<double>(c.v[value_at]) - memory.value, d = beta.value * difference;
        const double d_error =
            beta.value * memory.size * of_sum + std::fabs(difference) * beta.error + gamma_n(2) * std::fabs(d);
        for (std::size_t i = 0; i < s.size(); ++i) s[i] += k[i] * d;
        const double step_error = norm_of(k) * (d_error + std::fabs(d) * of_norm) + kUnit * norm_of(s);
        error = decay.value * error + kSecondOrder * (decay_error + step_error);
        const Sum out = product(s, q);
        bound.out[value_at] = kSecondOrder * (norm_of(q) * error + out.size * of_sum) + kTiny;
      }
      for (int i = 0; i < dk; ++i) bound.state[state_at(i, j)] = error + kTiny;
    }
  }
  return bound;
}

}  // namespace steadfast::test
