// Linear's kernels for 4-bit codes, groups of 64 or 128, bf16 scales.
#include "backend/cuda/device/linear_table.h"

namespace steadfast::cuda {

const FormKernels& four_kernels() {
  static const FormKernels kernels = form_kernels<Form::kFour>();
  return kernels;
}

}  // namespace steadfast::cuda
