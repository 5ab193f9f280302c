// Linear's kernels for 8-bit codes with float scales.
#include "backend/cuda/device/linear_table.h"

namespace steadfast::cuda {

const FormKernels& eight_float_kernels() {
  static const FormKernels kernels = form_kernels<Form::kEightFloat>();
  return kernels;
}

}  // namespace steadfast::cuda
