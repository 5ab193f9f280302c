// What the recurrence of one head reads, in float64, with the errors of an arithmetic: see delta.h.
#pragma once

#include "contract/reference/delta.h"

namespace steadfast::contract {

struct DeltaVector {
  std::vector<double> x, error;  // by element
  double norm() const;
  double error_norm() const;
};

struct DeltaRow {
  DeltaVector query, key, value;
  double beta = 0, beta_error = 0;  // absolute
  double log = 0, log_error = 0;    // of the decay
};

std::vector<DeltaRow> delta_rows(const DeltaInputs& inputs, Arithmetic arithmetic, int head);

}  // namespace steadfast::contract
