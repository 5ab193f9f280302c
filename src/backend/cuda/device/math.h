// The CUDA target's own exp, sigmoid, SiLU and roots: one routine for every kernel, of IEEE operations alone, so no
// compiler flag or instance rounds otherwise. exp splits x into n ln 2 + r, Cephes' polynomial in r (at most 2 ulp),
// times 2^n; above 88.7 infinity, below -104 zero, NaN stays NaN. Division and square root are IEEE's.
#pragma once

#include <cuda_runtime.h>

namespace steadfast::cuda {

__device__ inline float exp_f32(float x) {
  const float n = rintf(x * 1.44269504f);
  float r = __fmaf_rn(n, -0.693359375f, x);  // ln 2 in two parts; the first times n is exact
  r = __fmaf_rn(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = __fmaf_rn(p, r, 1.3981999507e-3f);
  p = __fmaf_rn(p, r, 8.3334519073e-3f);
  p = __fmaf_rn(p, r, 4.1665795894e-2f);
  p = __fmaf_rn(p, r, 1.6666665459e-1f);
  p = __fmaf_rn(p, r, 5.0000001201e-1f);
  p = __fmaf_rn(p, r * r, r) + 1.0f;
  const float bounded = fminf(fmaxf(n, -252.0f), 254.0f);
  const int whole = static_cast<int>(bounded), half = whole / 2;  // in two steps: 2^n alone may leave the range
  const float scaled = p * __int_as_float((half + 127) << 23) * __int_as_float((whole - half + 127) << 23);
  if (x > 88.7228394f) return __int_as_float(0x7F800000);
  if (x < -104.0f) return 0.0f;
  return x == x ? scaled : x;
}

__device__ inline float sigmoid(float x) { return __fdiv_rn(1.0f, 1.0f + exp_f32(-x)); }

__device__ inline float silu(float x) { return __fdiv_rn(x, 1.0f + exp_f32(-x)); }

// 1 / sqrt(x).
__device__ inline float inverse_root(float x) { return __fdiv_rn(1.0f, __fsqrt_rn(x)); }

// Of an RMS norm over `width` values.
__device__ inline float norm_factor(float squares, int width, float eps) {
  return inverse_root(__fdiv_rn(squares, static_cast<float>(width)) + eps);
}

}  // namespace steadfast::cuda
