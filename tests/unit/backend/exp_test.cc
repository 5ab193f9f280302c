// The kernels' exponential against double: at most 2 units in the last place, and its stated limits. Compiled here over
// the scalar lanes; that other instruction sets give the same bits is tested on the kernels (elementwise_test.cc).
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "backend/cpu/simd.h"

namespace steadfast::cpu {
namespace {

float exp_of(float x) {
  float lanes[16];
  Scalar::store(lanes, exp<Scalar>(Scalar::set1(x)));
  return lanes[5];
}

double error_in_ulp(float x) {
  const double exact = std::exp(static_cast<double>(x));
  const float near = static_cast<float>(exact);
  const double ulp = static_cast<double>(std::nextafter(near, INFINITY)) - static_cast<double>(near);
  return std::fabs(static_cast<double>(exp_of(x)) - exact) / ulp;
}

TEST(Exp, IsWithinTwoUlp) {
  double worst = 0;
  float at = 0;
  for (const float end : {88.37f, -87.3f}) {  // every 1009th float from 0 to the end
    const std::uint32_t first = std::bit_cast<std::uint32_t>(end) & 0x80000000u,
                        last = std::bit_cast<std::uint32_t>(end);
    for (std::uint32_t bits = first; bits <= last; bits += 1009) {
      const float x = std::bit_cast<float>(bits);
      const double error = error_in_ulp(x);
      if (error > worst) worst = error, at = x;
    }
  }
  EXPECT_LE(worst, 2) << "at " << at;
}

TEST(Exp, IsExactWhereItMustBe) {
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_EQ(exp_of(-0.0f), 1.0f);
}

TEST(Exp, HasItsLimits) {
  EXPECT_EQ(exp_of(-87.31f), 0.0f);
  EXPECT_EQ(exp_of(-1e30f), 0.0f);
  EXPECT_EQ(exp_of(-INFINITY), 0.0f);
  EXPECT_GT(exp_of(-87.3f), 0.0f);
  const float largest = exp_of(88.37f);
  EXPECT_TRUE(std::isfinite(largest));
  EXPECT_EQ(exp_of(88.5f), largest);
  EXPECT_EQ(exp_of(INFINITY), largest);
}

TEST(Exp, NeverFallsWhereItsArgumentRises) {
  float last = 0;
  for (float x = -90; x < 89; x += 0.001f) {
    const float value = exp_of(x);
    EXPECT_GE(value, last) << x;
    last = value;
  }
}

}  // namespace
}  // namespace steadfast::cpu
