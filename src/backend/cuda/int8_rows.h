// The rows of a linear's input, with their prologue, quantised (linear_int8.h) into the layout of linear_int8_plan.h:
// inputs behind the row's end are zero; rows behind the last are left as they are.
#pragma once

#include "backend/cuda/linear.h"
#include "backend/cuda/linear_int8_plan.h"

namespace steadfast::cuda {

void quantise_rows(Recorder& recorder, const LinearInput& input, const QuantisedRows& to);

}  // namespace steadfast::cuda
