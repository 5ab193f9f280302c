// Logarithm, sine and cosine in double on the card, operation by operation as in base/exact_math.cc: the same bits.
#pragma once

#include <cuda_runtime.h>

namespace steadfast::cuda {

// 2 atanh(s) for |s| <= 0.1716.
__device__ inline double two_atanh(double s) {
  constexpr double kOdd[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                             1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  const double z = s * s;
  double sum = 0;
#pragma unroll
  for (int k = 0; k < 12; ++k) sum = sum * z + kOdd[k];
  return 2.0 * s * sum;
}

// ln x for x > 0 and finite.
__device__ inline double exact_log(double x) {
  int n = 0;
  if (x < 2.2250738585072014e-308) {
    x *= 18014398509481984.0;  // 2^54
    n = -54;
  }
  const long long bits = __double_as_longlong(x);
  n += static_cast<int>(bits >> 52) - 1023;
  double m = __longlong_as_double((bits & 0x000FFFFFFFFFFFFFll) | 0x3FF0000000000000ll);
  if (m > 1.41421356237309504880) {
    m = m * 0.5;
    n += 1;
  }
  return n * 6.93147180369123816490e-01 + (n * 1.90821492927058770002e-10 + two_atanh((m - 1.0) / (m + 1.0)));
}

// ln(1 - u) for u in (0, 1].
__device__ inline double exact_log1m(double u) {
  if (u >= 1.0) return -745.0;
  if (u > 0.25) return exact_log(1.0 - u);
  return two_atanh(-u / (2.0 - u));
}

// |angle| < 2^30.
__device__ inline void exact_sincos(double angle, double& sine, double& cosine) {
  const double n = floor(angle * 0.63661977236758134308 + 0.5);
  double r = fma(-n, 1.57079632679489655800e+00, angle);
  r = fma(-n, 6.12323399573676603587e-17, r);
  const double z = r * r;
  double s = 1.0, c = 1.0;
#pragma unroll
  for (int k = 18; k >= 2; k -= 2) s = 1.0 - s * z / (k * (k + 1));
#pragma unroll
  for (int k = 19; k >= 1; k -= 2) c = 1.0 - c * z / (k * (k + 1));
  s = s * r;
  const auto quarter = static_cast<long long>(n) & 3;
  const bool swap = (quarter & 1) != 0;
  sine = swap ? c : s;
  cosine = swap ? s : c;
  if (quarter >= 2) sine = -sine;
  if (quarter == 1 || quarter == 2) cosine = -cosine;
}

}  // namespace steadfast::cuda
