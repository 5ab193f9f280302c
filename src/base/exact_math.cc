// Argument reduction and series. exp: x = n ln 2 + r, Taylor to r^13. log: x = 2^n m, atanh series in (m-1)/(m+1).
// Sine and cosine: angle = n pi/2 + r with pi/2 in two parts by fused multiply-adds, Taylor to r^19.
#include "base/exact_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace steadfast {
namespace {

constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;

double power_of_two(int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52); }

// 2 atanh(s) = ln((1+s)/(1-s)) for |s| <= 0.1716.
double two_atanh(double s) {
  const double z = s * s;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * z + 1.0 / k;
  return 2.0 * s * sum;
}

}  // namespace

double exact_exp(double x) {
  if (x < -745.0) return 0.0;
  if (x > 709.0) return std::numeric_limits<double>::infinity();
  if (std::isnan(x)) return x;
  const double n = std::floor(x * 1.44269504088896340736 + 0.5);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double sum = 1.0;
  for (int k = 13; k >= 1; --k) sum = sum * r / k + 1.0;
  const int half = static_cast<int>(n) / 2;  // in two steps: 2^n alone may be subnormal
  return sum * power_of_two(half) * power_of_two(static_cast<int>(n) - half);
}

double exact_log(double x) {
  int n = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    n = -54;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  n += static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  if (m > 1.41421356237309504880) {
    m = m * 0.5;
    n += 1;
  }
  const double s = (m - 1.0) / (m + 1.0);
  return n * kLn2High + (n * kLn2Low + two_atanh(s));
}

double exact_log1m(double u) {
  if (u >= 1.0) return -745.0;
  if (u > 0.25) return exact_log(1.0 - u);
  return two_atanh(-u / (2.0 - u));
}

double exact_log1p(double x) { return x > 0.25 ? exact_log(1.0 + x) : two_atanh(x / (2.0 + x)); }

void exact_sincos(double angle, double& sine, double& cosine) {
  const double n = std::floor(angle * 0.63661977236758134308 + 0.5);
  double r = std::fma(-n, 1.57079632679489655800e+00, angle);  // pi/2 to 53 bits; exact: the difference fits a double
  r = std::fma(-n, 6.12323399573676603587e-17, r);             // its next 53
  const double z = r * r;
  double s = 1.0, c = 1.0;
  for (int k = 18; k >= 2; k -= 2) s = 1.0 - s * z / (k * (k + 1));
  for (int k = 19; k >= 1; k -= 2) c = 1.0 - c * z / (k * (k + 1));
  s = s * r;
  switch (static_cast<std::int64_t>(n) & 3) {
    case 0:
      sine = s, cosine = c;
      break;
    case 1:
      sine = c, cosine = -s;
      break;
    case 2:
      sine = -s, cosine = -c;
      break;
    default:
      sine = -c, cosine = s;
      break;
  }
}

}  // namespace steadfast
