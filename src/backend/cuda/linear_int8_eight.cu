// int8 linears of 8-bit codes.
#include "backend/cuda/device/linear_int8_tile.h"

namespace steadfast::cuda {

const Int8Kernels& int8_eight_kernels(int group) {
  return group == 32 ? int8_kernels<Form::kEight, 32>() : int8_kernels<Form::kEight, 64>();
}
const Int8Kernels& int8_eight_float_kernels(int group) {
  return group == 32 ? int8_kernels<Form::kEightFloat, 32>() : int8_kernels<Form::kEightFloat, 64>();
}

}  // namespace steadfast::cuda
