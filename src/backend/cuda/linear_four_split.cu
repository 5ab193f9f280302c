// Linear's kernels for 4-bit codes, groups of 32, bf16 scales.
#include "backend/cuda/device/linear_table.h"

namespace steadfast::cuda {

const FormKernels& four_split_kernels() {
  static const FormKernels kernels = form_kernels<Form::kFourSplit>();
  return kernels;
}

}  // namespace steadfast::cuda
