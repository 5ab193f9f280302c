// The sum of a row's squares in linears: strips of 16 features, each in a tree that suits the sums of a matrix
// instruction (a feature and the eighth after it by fma, then a butterfly over eight); strips in 32 chains (strip mod
// 32) ascending, then a butterfly over 32 lanes.
#pragma once

#include "backend/cuda/device/math.h"
#include "backend/cuda/device/reduce.h"

namespace steadfast::cuda {

__device__ inline float pair_squares(float low, float high) { return __fmaf_rn(high, high, __fmul_rn(low, low)); }

__device__ inline float strip_squares(const float (&low)[8], const float (&high)[8]) {
  float s[8];
#pragma unroll
  for (int g = 0; g < 8; ++g) s[g] = pair_squares(low[g], high[g]);
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

// The same where lane = 4 g + t holds features g and g + 8 of its row; every lane of the row gets it.
__device__ inline float strip_squares_of_lanes(float low, float high) {
  float s = pair_squares(low, high);
#pragma unroll
  for (int distance = 4; distance <= 16; distance *= 2) s += __shfl_xor_sync(0xFFFFFFFFu, s, distance);
  return s;
}

// A lane's chain goes on over `count` strips, a multiple of 32, of which the first is a multiple of 32.
__device__ inline float add_strips(float sum, const float* strips, int count, int lane) {
  for (int i = lane; i < count; i += 32) sum += strips[i];
  return sum;
}

}  // namespace steadfast::cuda
