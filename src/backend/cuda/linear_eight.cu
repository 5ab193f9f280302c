// Linear's kernels for 8-bit codes, bf16 scales.
#include "backend/cuda/device/linear_table.h"

namespace steadfast::cuda {

const FormKernels& eight_kernels() {
  static const FormKernels kernels = form_kernels<Form::kEight>();
  return kernels;
}

}  // namespace steadfast::cuda
