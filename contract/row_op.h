// Ops whose output rows each follow from one input row: what the gates of all of them share. Each row alone, every
// batch size at the beginning, the middle and the end of the case, every schedule; float64; controls.
#pragma once

#include "contract/kernel.h"

namespace steadfast::contract {

struct RowOp {
  int rows = 0, width = 0;  // of the output
  // Appends the op for rows [first, first + out.rows) of the case.
  std::function<void(Backend& backend, int first, const Matrix& out)> run;
  // One row in float64 and what its error may be, [width] each.
  std::function<void(int row, double* exact, double* bound)> reference;
  // Values that are in `out` before the op, [rows][width]; empty: poison.
  std::vector<float> before = {};
  int gap = 16;
  int reference_rows = 64;  // spread over the case
  std::string kernel = {};  // schedules of this kernel alone count too
};

// Outputs of the rows alone; the gates' verdicts on them.
std::vector<float> check_row_op(Context& context, const RowOp& op, Gates& gates);

// Rows [first, first + rows) of the op in one call of the backend.
std::vector<float> run_rows(Backend& backend, const RowOp& op, OutputRows& out, int first, int rows, bool& damage);

// Whether rows [0, rows), computed again, differ from those alone: for controls.
bool differs(Context& context, const RowOp& op, const std::vector<float>& alone, int rows);
// The worst share of the bound over rows [0, rows), computed again.
double worst_share(Context& context, const RowOp& op, int rows);

// The rows that a reference is computed for: first, last, and others between, `most` at the most.
std::vector<int> sampled(int rows, int most);

}  // namespace steadfast::contract
