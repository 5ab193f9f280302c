// Linear's kernels for bf16 weights.
#include "backend/cuda/device/linear_table.h"

namespace steadfast::cuda {

const FormKernels& dense_kernels() {
  static const FormKernels kernels = form_kernels<Form::kDense>();
  return kernels;
}

}  // namespace steadfast::cuda
