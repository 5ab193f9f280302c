// Norms, activations, quantisation and attention over one instruction set S of simd.h.
// Attention of a row at position p: spans of 512 absolute positions, ascending. In a span: scores by chains over dim,
// scaled; their exact maximum m; e^(s - m); their sum in 16 classes (position mod 16), ascending, then the fixed tree;
// values by chains over positions. Spans are folded in ascending order. Positions behind p are never multiplied.
// fp8: the codes' dot is scaled by (scale * the key's scale), a weight by its value's scale; both are powers of two.
#pragma once

#include "backend/cpu/kernels.h"
#include "backend/cpu/linear_impl.h"
#include "backend/cpu/simd.h"

namespace steadfast::cpu {
namespace {

constexpr float kVanishing = 0x1p-110f;  // groups below it count as zeros: limit / amax would overflow

template <typename S>
void quantise(const float* x, int in, int group, std::int8_t* codes, std::int8_t* low, float* scales,
              std::int32_t* sums) {
  const float limit = low != nullptr ? 127.0f * 256 : 127.0f;
  for (int g = 0; g * group < in; ++g) {
    const float* xs = x + g * group;
    auto peak = S::zero();
    for (int i = 0; i < group; i += kLanes) peak = S::max(S::abs(S::load(xs + i)), peak);
    const float amax = max_lanes<S>(peak);
    const float inverse = amax > kVanishing ? limit / amax : 0.0f;
    scales[g] = amax / limit;
    std::int8_t* high = codes + g * group;
    if (low == nullptr) {
      for (int i = 0; i < group; i += kLanes) S::store_int8(high + i, S::mul(S::load(xs + i), S::set1(inverse)));
    } else {
      for (int i = 0; i < group; i += kLanes) {  // whole numbers and quarters below 2^17: each step is exact
        const auto code = S::round(S::mul(S::load(xs + i), S::set1(inverse)));
        const auto top =
            S::round(S::mul(S::add(code, S::set1(0.25f)), S::set1(1.0f / 256)));  // a low digit of 128 is -128
        S::store_int8(high + i, top);
        S::store_int8(low + g * group + i, S::fma(top, S::set1(-256.0f), code));
      }
    }
    std::int32_t sum = 0;
    for (int i = 0; i < group; ++i) sum += low == nullptr ? high[i] : 256 * high[i] + low[g * group + i];
    sums[g] = sum;
  }
}

template <typename S>
void rms_norm(const float* x, const float* w, int n, float eps, float* y) {
  auto squares = S::zero();
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto v = S::load(x + i);
    squares = S::fma(v, v, squares);
  }
  float sum = sum_lanes<S>(squares);
  for (int j = i; j < n; ++j) sum = sum + x[j] * x[j];
  const float inverse = 1.0f / std::sqrt(sum / static_cast<float>(n) + eps);
  for (i = 0; i + kLanes <= n; i += kLanes)
    S::store(y + i, S::mul(S::mul(S::load(x + i), S::set1(inverse)), S::load(w + i)));
  for (; i < n; ++i) y[i] = x[i] * inverse * w[i];
}

template <typename S>
inline typename S::F silu(typename S::F x) {
  const auto one = S::set1(1.0f);
  return S::div(x, S::add(one, exp<S>(S::sub(S::zero(), x))));
}

template <typename S>
void silu_mul(const float* gate, const float* up, int n, float* y) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) S::store(y + i, S::mul(silu<S>(S::load(gate + i)), S::load(up + i)));
  if (i < n) {
    float g[kLanes] = {}, u[kLanes] = {}, out[kLanes];
    for (int j = i; j < n; ++j) g[j - i] = gate[j], u[j - i] = up[j];
    S::store(out, S::mul(silu<S>(S::load(g)), S::load(u)));
    for (int j = i; j < n; ++j) y[j] = out[j - i];
  }
}

template <typename S>
void sigmoid_mul(const float* x, const float* gate, int n, float* y) {
  const auto one = S::set1(1.0f);
  const auto part = [&](typename S::F value, typename S::F g) {
    return S::div(value, S::add(one, exp<S>(S::sub(S::zero(), g))));
  };
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) S::store(y + i, part(S::load(x + i), S::load(gate + i)));
  if (i < n) {
    float v[kLanes] = {}, g[kLanes] = {}, out[kLanes];
    for (int j = i; j < n; ++j) v[j - i] = x[j], g[j - i] = gate[j];
    S::store(out, part(S::load(v), S::load(g)));
    for (int j = i; j < n; ++j) y[j] = out[j - i];
  }
}

template <typename S>
void round_bf16(const float* x, int n, float* y) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) S::store(y + i, S::round_bf16(S::load(x + i)));
  if (i < n) {
    float tail[kLanes] = {}, out[kLanes];
    for (int j = i; j < n; ++j) tail[j - i] = x[j];
    S::store(out, S::round_bf16(S::load(tail)));
    for (int j = i; j < n; ++j) y[j] = out[j - i];
  }
}

inline std::ptrdiff_t block_offset(const KvView& kv, int block) {
  const int position = block * kLanes;
  const int page = position >> kv.page_shift;
  const int within = position & ((1 << kv.page_shift) - 1);
  return kv.pages[page] * kv.page_stride + kv.head_offset + static_cast<std::ptrdiff_t>(within) * kv.dim;
}

// Where the scales of a block's 16 positions lie.
inline std::ptrdiff_t scale_offset(const KvView& kv, int block) {
  const int position = block * kLanes;
  return kv.pages[position >> kv.page_shift] * kv.scale_page_stride + kv.scale_head_offset +
         (position & ((1 << kv.page_shift) - 1));
}

template <typename S, KvType kType>
inline typename S::F load_kv(const void* base, std::ptrdiff_t at) {
  if constexpr (kType == KvType::kBF16)
    return S::load_bf16(static_cast<const std::uint16_t*>(base) + at);
  else if constexpr (kType == KvType::kF8)
    return S::load_f8(static_cast<const std::uint8_t*>(base) + at);
  else
    return S::load(static_cast<const float*>(base) + at);
}

// Scores of kQueries against kBlocks consecutive blocks of 16 keys.
template <typename S, KvType kType, int kQueries, int kBlocks>
inline void score_blocks(const AttentionCall& call, int block, int first_block, float* scores) {
  typename S::F acc[kBlocks][kQueries];
  std::ptrdiff_t at[kBlocks];
  for (int b = 0; b < kBlocks; ++b) {
    at[b] = block_offset(call.kv, block + b);
    for (int q = 0; q < kQueries; ++q) acc[b][q] = S::zero();
  }
  for (int d = 0; d < call.kv.dim; ++d) {
    for (int b = 0; b < kBlocks; ++b) {
      const auto key = load_kv<S, kType>(call.kv.keys, at[b] + static_cast<std::ptrdiff_t>(d) * kLanes);
      for (int q = 0; q < kQueries; ++q) acc[b][q] = S::fma(key, S::set1(call.query[q][d]), acc[b][q]);
    }
  }
  for (int b = 0; b < kBlocks; ++b) {
    auto factor = S::set1(call.scale);
    if constexpr (kType == KvType::kF8)
      factor = S::mul(factor, S::load(call.kv.key_scales + scale_offset(call.kv, block + b)));
    for (int q = 0; q < kQueries; ++q)
      S::store(scores + q * kSpan + (block + b - first_block) * kLanes, S::mul(acc[b][q], factor));
  }
}

// fp8: each weight times its value's scale, which is a power of two.
template <typename S>
inline void scale_weights(const AttentionCall& call, int first_block, int count, float* weights) {
  for (int at = 0; at < count; at += kLanes) {
    const auto scales = S::load(call.kv.value_scales + scale_offset(call.kv, first_block + at / kLanes));
    S::store(weights + at, S::mul(S::load(weights + at), scales));
  }
}

// Sums p * value over the whole blocks [first_block, last_block) for 64 dims at a time (or what is left of dim).
template <typename S, KvType kType, int kQueries, int kVectors>
inline void value_blocks(const AttentionCall& call, int first_block, int last_block, const float* p, int dim0,
                         float* out) {
  typename S::F acc[kQueries][kVectors];
  for (int q = 0; q < kQueries; ++q)
    for (int v = 0; v < kVectors; ++v) acc[q][v] = S::zero();
  for (int block = first_block; block < last_block; ++block) {
    const std::ptrdiff_t at = block_offset(call.kv, block) + dim0;
    const float* weights = p + (block - first_block) * kLanes;
    for (int j = 0; j < kLanes; ++j) {
      for (int v = 0; v < kVectors; ++v) {
        const auto value =
            load_kv<S, kType>(call.kv.values, at + static_cast<std::ptrdiff_t>(j) * call.kv.dim + v * kLanes);
        for (int q = 0; q < kQueries; ++q) acc[q][v] = S::fma(value, S::set1(weights[q * kSpan + j]), acc[q][v]);
      }
    }
  }
  for (int q = 0; q < kQueries; ++q)
    for (int v = 0; v < kVectors; ++v) S::store(out + q * call.kv.dim + dim0 + v * kLanes, acc[q][v]);
}

// The last block of query q: only its first `count` positions.
template <typename S, KvType kType>
inline void value_tail(const AttentionCall& call, int block, int count, const float* weights, float* out) {
  const std::ptrdiff_t at = block_offset(call.kv, block);
  for (int d = 0; d < call.kv.dim; d += kLanes) {
    auto acc = S::load(out + d);
    for (int j = 0; j < count; ++j)
      acc = S::fma(load_kv<S, kType>(call.kv.values, at + static_cast<std::ptrdiff_t>(j) * call.kv.dim + d),
                   S::set1(weights[j]), acc);
    S::store(out + d, acc);
  }
}

// Scores to weights in place; returns the maximum and the sum.
template <typename S>
inline void soften(float* scores, int count, float& maximum, float& total) {
  const int blocks = (count + kLanes - 1) / kLanes;
  const auto low = S::set1(-INFINITY);
  auto peak = low;
  for (int b = 0; b < blocks; ++b) {
    const auto s = S::first(count - b * kLanes, S::load(scores + b * kLanes), low);
    S::store(scores + b * kLanes, s);
    peak = S::max(s, peak);
  }
  maximum = max_lanes<S>(peak);
  auto sum = S::zero();
  for (int b = 0; b < blocks; ++b) {
    const auto p = exp<S>(S::sub(S::load(scores + b * kLanes), S::set1(maximum)));
    S::store(scores + b * kLanes, p);
    sum = S::add(sum, p);
  }
  total = sum_lanes<S>(sum);
}

// Folds a span's (m, sum, values) into the row's running ones.
template <typename S>
inline void fold(int dim, bool first, float span_max, float span_sum, const float* span, float& row_max, float& row_sum,
                 float* row) {
  if (first) {
    for (int d = 0; d < dim; d += kLanes) S::store(row + d, S::load(span + d));
    row_max = span_max;
    row_sum = span_sum;
    return;
  }
  const float top = span_max > row_max ? span_max : row_max;
  float factors[kLanes] = {row_max - top, span_max - top};
  S::store(factors, exp<S>(S::load(factors)));
  const auto old_factor = S::set1(factors[0]), new_factor = S::set1(factors[1]);
  for (int d = 0; d < dim; d += kLanes)
    S::store(row + d, S::fma(S::load(span + d), new_factor, S::mul(S::load(row + d), old_factor)));
  row_sum = row_sum * factors[0] + span_sum * factors[1];
  row_max = top;
}

template <typename S, KvType kType, int kQueries>
inline void attend(const AttentionCall& call) {
  const int dim = call.kv.dim;
  float* scores = call.scratch;
  float* span = scores + kMaxQueries * kSpan;
  float* row = span + kMaxQueries * dim;
  float row_max[kQueries], row_sum[kQueries];
  const int last_block = call.position[0] / kLanes;  // holds every query's own position
  constexpr int kBlocks = kQueries == 1 ? 4 : 2;
  constexpr int kSpanBlocks = kSpan / kLanes;
  for (int first = 0; first <= last_block; first += kSpanBlocks) {
    const int end = first + kSpanBlocks <= last_block ? first + kSpanBlocks : last_block + 1;
    int block = first;
    for (; block + kBlocks <= end; block += kBlocks)
      score_blocks<S, kType, kQueries, kBlocks>(call, block, first, scores);
    for (; block < end; ++block) score_blocks<S, kType, kQueries, 1>(call, block, first, scores);
    const bool tail = end == last_block + 1;
    float span_max[kQueries], span_sum[kQueries];
    for (int q = 0; q < kQueries; ++q) {
      const int count = tail ? call.position[q] - first * kLanes + 1 : kSpan;
      soften<S>(scores + q * kSpan, count, span_max[q], span_sum[q]);
      if constexpr (kType == KvType::kF8) scale_weights<S>(call, first, count, scores + q * kSpan);
    }
    const int whole = tail ? last_block : end;
    int d = 0;
    for (; d + 64 <= dim; d += 64) value_blocks<S, kType, kQueries, 4>(call, first, whole, scores, d, span);
    for (; d < dim; d += kLanes) value_blocks<S, kType, kQueries, 1>(call, first, whole, scores, d, span);
    for (int q = 0; q < kQueries; ++q) {
      if (tail) {
        value_tail<S, kType>(call, last_block, call.position[q] - last_block * kLanes + 1,
                             scores + q * kSpan + (last_block - first) * kLanes, span + q * dim);
      }
      fold<S>(dim, first == 0, span_max[q], span_sum[q], span + q * dim, row_max[q], row_sum[q], row + q * dim);
    }
  }
  for (int q = 0; q < kQueries; ++q)
    for (int d = 0; d < dim; d += kLanes)
      S::store(call.out[q] + d, S::div(S::load(row + q * dim + d), S::set1(row_sum[q])));
}

template <typename S>
void attention(const AttentionCall& call) {
  const auto with_queries = [&](auto type) {
    constexpr KvType kType = static_cast<KvType>(decltype(type)::value);
    switch (call.queries) {
      case 1:
        return attend<S, kType, 1>(call);
      case 2:
        return attend<S, kType, 2>(call);
      case 3:
        return attend<S, kType, 3>(call);
      default:
        return attend<S, kType, 4>(call);
    }
  };
  switch (call.kv.type) {
    case KvType::kF32:
      return with_queries(Int<static_cast<int>(KvType::kF32)>{});
    case KvType::kBF16:
      return with_queries(Int<static_cast<int>(KvType::kBF16)>{});
    case KvType::kF8:
      return with_queries(Int<static_cast<int>(KvType::kF8)>{});
  }
}

}  // namespace
}  // namespace steadfast::cpu
