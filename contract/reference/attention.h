// Attention of one row and head in float64, from the keys and values as the cache holds them, and what the error of an
// arithmetic may be. With o the exact output, w the softmax's weights, v the values:
// a relative error of at most e in each weight moves o by at most e / (1 - e) * sum w |v - o|, as the same weights are
// summed below the line. e is
//   CUDA: a score's error (dim / 16 + 1 steps of 2^-22 of sum |q k|, the scale rounded, one fma: 3 roundings of |score|
//     and of the reference) as an exponent, 2^x within 2^-22, the weight rounded to bf16: 2^-8;
//   CPU: the score's chain and scaling: gamma_(dim + 2) of sum |q k|; the rounding of score - max; exp within 2^-22.
// Sums: CUDA: one step of 2^-22 for 16 positions, 4 for each fold, of sum w |v| and of |o|; CPU: gamma of a span's 512
// products and the folds.
#pragma once

#include "contract/kv_problem.h"

namespace steadfast::contract {

struct AttentionRow {
  std::vector<double> exact, bound;  // [dim]
};

// keys, values: [positions][kv_heads * dim], as stored_values() gives each row; query: [dim], not yet rounded.
AttentionRow attention_row(const KvShape& shape, Arithmetic arithmetic, const std::vector<std::vector<double>>& keys,
                           const std::vector<std::vector<double>>& values, const float* query, int head, int position);

}  // namespace steadfast::contract
