// Linear over int8 activations on the card (--prompt-act int8): out = x W^T (+ bias) (+ add), as linear.h, for several
// weights that read the same rows. A row, after its prologue, is quantised in the weight's groups (of 128: in halves):
// m = max |x|, scale = m / 127, code = round(x * (127 / m)), ties to even; below m = 2^-100 all are zero. Then for the
// groups in ascending order, dots exact in integers:
//   acc = fma(float(dot), weight_scale * scale, acc);  acc = fma(weight_bias, scale * float(sum of codes), acc)
// then + bias, then + add. One chain over all of K: no slices, so no schedule enters. Unquantised weights have no
// groups: they take linear.h's arithmetic.
#pragma once

#include "backend/cuda/linear.h"

namespace steadfast::cuda {

enum class Int8Schedule : std::uint8_t { kAuto, kMany, kFew, kLeast };  // by rows and card; for tests

void linear_int8(Recorder& recorder, const LinearInput& input, std::span<const LinearJobArgs> jobs,
                 Int8Schedule schedule = Int8Schedule::kAuto);

// Scratch that linear_int8() asks the recorder for, at most, with rows of at most `in` inputs.
std::size_t int8_scratch_bytes(int rows, int in);

}  // namespace steadfast::cuda
