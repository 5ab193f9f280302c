// Linear's kernels for 4-bit codes with float scales.
#include "backend/cuda/device/linear_table.h"

namespace steadfast::cuda {

const FormKernels& four_float_kernels() {
  static const FormKernels kernels = form_kernels<Form::kFourFloat>();
  return kernels;
}

}  // namespace steadfast::cuda
