// How far float32 may be from float64 in the recurrence of a case: the running error of its steps (Higham, Accuracy and
// Stability of Numerical Algorithms, 2nd edition, sections 3.1 and 3.3), carried from row to row beside the exact
// state.
#pragma once

#include <vector>

#include "golden_ops.h"

namespace steadfast::test {

constexpr double kUnit = 1.0 / (1 << 24);  // of float32: the largest relative error of one rounding
constexpr double kTiny = 1e-44;            // below this float32 has no digits

// Of n roundings one after the other.
constexpr double gamma_n(int n) { return n * kUnit / (1 - n * kUnit); }
// Of x / sqrt(sum x^2 + eps) and its scale: squares in 16 chains and a tree of 4, root, reciprocal, two products.
constexpr double norm_error(int n) { return gamma_n(n / 16 + 10); }

struct DeltaBound {
  std::vector<double> out, state;  // as the golden's o and state_after
};

DeltaBound bound_of(const DeltaCase& c);

}  // namespace steadfast::test
