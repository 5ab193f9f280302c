// Cases of tests/golden/ops, and a run of one through the recurrence of a backend.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "support/checkpoint.h"

namespace steadfast::test {

std::map<std::string, StoredTensor> read_ops(const std::string& name);

// q, k [rows, key_heads, key_dim] raw; v [rows, value_heads, value_dim]; g, beta [rows, value_heads];
// state [value_heads, key_dim, value_dim].
struct DeltaCase {
  DeltaCase() = default;
  DeltaCase(const std::map<std::string, StoredTensor>& tensors, const std::string& name);

  DeltaShape shape;
  int rows = 0;
  std::vector<float> q, k, v, g, beta, state;

  // A backend's state without the padding of its value dims.
  std::vector<float> unpadded(const std::vector<float>& padded) const;
};

// What ops::delta_rule makes of a case. Its gates are inputs of the op: a = softplus^-1(-g) with -exp(A_log) = -1 and
// b = sigmoid^-1(beta), rounded to float32.
struct DeltaRun {
  explicit DeltaRun(const DeltaCase& c);
  void step(Backend& backend, int piece);  // all rows, in pieces

  DeltaShape shape;
  int rows;
  std::vector<float> mixed, a, b, state, out;
};

}  // namespace steadfast::test
