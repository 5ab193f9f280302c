// Linear in float64: one feature's weights against rows, and what the error may be. The rows and weights are those that
// the arithmetic multiplies (rounded to bf16, or codes with a row's scales), so the bound counts the roundings of sums:
// - CPU float32 chains (f32, bf16, dense): Higham's gamma over in + 2 fused steps of the terms' magnitudes.
// - CPU int8: a group's exact dot is rounded, scaled by a rounded product and added, the sum of codes likewise: gamma
// of
//   2 groups + 3.
// - CUDA int8 (prompts): the same, groups of 128 in halves, no zero point taken out.
// - CUDA: a k16 step adds 16 products and the sum so far, each cut below 2^-23 of the largest: at most 2^-22 of the
//   terms' magnitudes a step and slice.
// Bias and residual: a rounding each.
#pragma once

#include "contract/random_weights.h"

namespace steadfast::contract {

// A row as the arithmetic multiplies it: values, or (int8) codes with a scale a group.
struct LinearRow {
  std::vector<double> values;
  std::vector<double> scales;  // int8 alone, [in / group]
};
LinearRow linear_row(const float* x, int in, const WeightForm& form, Arithmetic arithmetic, bool fine);

// A feature: weights as multiplied, for int8 its codes less the zero point, scales and biases.
struct LinearFeature {
  std::vector<double> weights;
  std::vector<double> scales, biases;  // int8 alone
};
LinearFeature linear_feature(const RandomWeight& weight, int feature, Arithmetic arithmetic);

struct Exact {
  double value = 0, bound = 0;
};
// steps: CUDA alone, k16 steps and slices together.
Exact linear_value(const LinearRow& row, const LinearFeature& feature, const WeightForm& form, Arithmetic arithmetic,
                   int steps, double bias, double add);

}  // namespace steadfast::contract
