// Keys of a draw: float order as unsigned order, and a probability's mass as a whole number.
#pragma once

#include <cstdint>

#include "backend/cuda/device/math.h"

namespace steadfast::cuda {

// Larger for larger x; negative zero below zero.
__device__ inline std::uint32_t order_of(float x) {
  const auto bits = static_cast<std::uint32_t>(__float_as_int(x));
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

__device__ inline float value_of(std::uint32_t order) {
  return __int_as_float(static_cast<int>((order & 0x80000000u) != 0 ? order & 0x7FFFFFFFu : ~order));
}

// e^(x - peak) in units of 2^-38, rounded down; at most 2^38. No number: 0.
__device__ inline unsigned long long mass_of(float x, float peak) {
  const float e = exp_f32(static_cast<float>(static_cast<double>(x) - static_cast<double>(peak)));
  return e > 0 ? static_cast<unsigned long long>(fminf(e, 1.0f) * 274877906944.0f) : 0ull;
}

}  // namespace steadfast::cuda
