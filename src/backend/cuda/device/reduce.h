// Sums in trees that the number of threads fixes. A warp's butterfly adds lanes that differ in bit 4, then 3, 2, 1, 0;
// a block then adds its warps' sums in ascending order. Every thread gets the same bits.
#pragma once

#include <cuda_runtime.h>

namespace steadfast::cuda {

__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance >>= 1) x += __shfl_xor_sync(0xFFFFFFFFu, x, distance);
  return x;
}

// All threads of the block call it; `shared` holds kWarps floats that nobody else uses meanwhile.
template <int kWarps>
__device__ float block_sum(float x, float* shared) {
  x = warp_sum(x);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  float total = shared[0];
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) total += shared[warp];
  __syncthreads();
  return total;
}

}  // namespace steadfast::cuda
