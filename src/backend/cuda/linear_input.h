// The rows of a linear's input, with their prologue, as bf16 in the kernels' layout (linear_plan.h): inputs behind the
// row's end are zero up to a whole chunk; rows behind the last are left as they are.
#pragma once

#include "backend/cuda/linear.h"

namespace steadfast::cuda {

// factors: of kRmsNorm alone, [rows]; the rows are then x * weight, and the sums still to be multiplied by them.
void write_linear_input(Recorder& recorder, const LinearInput& input, int padded_rows, std::uint8_t* to,
                        float* factors);

}  // namespace steadfast::cuda
