// int8 linears of 4-bit codes.
#include "backend/cuda/device/linear_int8_tile.h"

namespace steadfast::cuda {

const Int8Kernels& int8_four_kernels() { return int8_kernels<Form::kFour, 64>(); }
const Int8Kernels& int8_four_split_kernels() { return int8_kernels<Form::kFourSplit, 32>(); }
const Int8Kernels& int8_four_float_kernels(int group) {
  return group == 32 ? int8_kernels<Form::kFourFloat, 32>() : int8_kernels<Form::kFourFloat, 64>();
}

}  // namespace steadfast::cuda
