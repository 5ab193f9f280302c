// Gated DeltaNet kernels over one instruction set S of simd.h (model-spec 1.6), the step form: one step a row, in fp32,
// in position order. A lane is a channel or a value dimension; no sum crosses rows of a round.
#pragma once

#include "backend/cpu/kernels_impl.h"

namespace steadfast::cpu {
namespace {

// y[c] = silu(sum over j ascending of w[j][c] * x[j][c]); x[j]: the input row j - (taps - 1) steps back.
template <typename S>
void conv_silu(const float* const* x, const float* w, int taps, int channels, float* y) {
  int c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    auto acc = S::zero();
    for (int j = 0; j < taps; ++j)
      acc = S::fma(S::load(w + static_cast<std::ptrdiff_t>(j) * channels + c), S::load(x[j] + c), acc);
    S::store(y + c, silu<S>(acc));
  }
  if (c == channels) return;
  float sums[kLanes] = {}, out[kLanes];
  for (int i = c; i < channels; ++i)
    for (int j = 0; j < taps; ++j)
      sums[i - c] = std::fma(w[static_cast<std::ptrdiff_t>(j) * channels + i], x[j][i], sums[i - c]);
  S::store(out, silu<S>(S::load(sums)));
  for (int i = c; i < channels; ++i) y[i] = out[i - c];
}

// x * (1 / sqrt(sum(x^2) + 1e-6)) * scale, in place.
template <typename S>
void l2_norm(float* x, int n, float scale) {
  auto squares = S::zero();
  for (int i = 0; i < n; i += kLanes) {
    const auto v = S::load(x + i);
    squares = S::fma(v, v, squares);
  }
  const float factor = 1.0f / std::sqrt(sum_lanes<S>(squares) + 1e-6f);
  for (int i = 0; i < n; i += kLanes) S::store(x + i, S::mul(S::mul(S::load(x + i), S::set1(factor)), S::set1(scale)));
}

// One row of one head for kVectors * 16 value dims: S = decay S; d = beta (v - S^T k); S += k d^T; o = S^T q.
// Sums are chains over the key dims ascending.
template <typename S, int kVectors>
inline void delta_columns(const DeltaStep& step, int key_dim, std::ptrdiff_t width, float* state, const float* v,
                          float* o) {
  typename S::F sums[kVectors], d[kVectors];
  const auto decay = S::set1(step.decay), beta = S::set1(step.beta);
  for (int i = 0; i < kVectors; ++i) sums[i] = S::zero();
  for (int k = 0; k < key_dim; ++k) {
    const auto key = S::set1(step.key[k]);
    for (int i = 0; i < kVectors; ++i) {
      float* at = state + k * width + i * kLanes;
      const auto s = S::mul(S::load(at), decay);
      S::store(at, s);
      sums[i] = S::fma(s, key, sums[i]);
    }
  }
  for (int i = 0; i < kVectors; ++i) {
    d[i] = S::mul(beta, S::sub(S::load(v + i * kLanes), sums[i]));
    sums[i] = S::zero();
  }
  for (int k = 0; k < key_dim; ++k) {
    const auto key = S::set1(step.key[k]), query = S::set1(step.query[k]);
    for (int i = 0; i < kVectors; ++i) {
      float* at = state + k * width + i * kLanes;
      const auto s = S::fma(key, d[i], S::load(at));
      S::store(at, s);
      sums[i] = S::fma(s, query, sums[i]);
    }
  }
  for (int i = 0; i < kVectors; ++i) S::store(o + i * kLanes, sums[i]);
}

template <typename S>
void delta_step(const DeltaStep& step, int key_dim, int value_dim, float* state) {
  const int width = (value_dim + kLanes - 1) / kLanes * kLanes;
  float v[kMaxValueDim] = {}, o[kMaxValueDim];
  for (int i = 0; i < value_dim; ++i) v[i] = step.value[i];
  int c = 0;
  for (; c + 4 * kLanes <= width; c += 4 * kLanes) delta_columns<S, 4>(step, key_dim, width, state + c, v + c, o + c);
  for (; c < width; c += kLanes) delta_columns<S, 1>(step, key_dim, width, state + c, v + c, o + c);
  for (int i = 0; i < value_dim; ++i) step.out[i] = o[i];
}

}  // namespace
}  // namespace steadfast::cpu
