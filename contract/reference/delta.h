// Gated DeltaNet (model-spec 1.6) in float64, the step form, head by head, and a bound of an arithmetic's error.
//
// Bound. Per column j of the state s (one value dim, a vector over key dims), by norms. The exact step
//   s <- g s + k beta (v - g k.s)  is  (I - beta k k^T) g s + beta v k:  with |k| <= 1, 0 <= beta <= 1, g <= 1 it never
// lengthens a difference. So an error e that stands before a step is at most g e behind it, and each step (CPU) or
// chunk (CUDA) adds its own roundings once:
// - Rows before the recurrence: the convolution's chain (gamma of its taps, times silu's slope of at most 1.1), silu,
//   the norm's factor. CPU: errors of the rows as they are. CUDA rounds them to bf16: the rows here are rounded too,
//   and only elements so near a border that their own error may cross it count, with the whole step between both sides.
// - CPU: gamma of the dots' key_dim products, 4 roundings of what is added, the gates' own errors.
// - CUDA: A and T = (I + A)^-1 by substitution: |dT| <= |T| (dA + gamma_18 (|A| + I)) |T|; M = P T likewise; a number
//   taken as two bf16 is off by 2^-16, a product of two such by 2^-14; k16 steps of sums by 2^-22 each.
#pragma once

#include "contract/kernel.h"

namespace steadfast::contract {

struct DeltaInputs {
  DeltaShape shape;
  int rows = 0;
  std::vector<float> x, a, b;                  // [rows][conv_width], [rows][value_heads]
  std::vector<float> conv, a_weight, dt_bias;  // [taps][conv_width], [value_heads]
};

struct DeltaHead {
  std::vector<double> exact, bound;  // [rows][value_dim]
};
DeltaHead delta_head(const DeltaInputs& inputs, Arithmetic arithmetic, int head);

}  // namespace steadfast::contract
