// Our own exp, log, sine and cosine against the platform's long double functions, within the stated errors.
#include "base/exact_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace steadfast {
namespace {

constexpr double kRelative = 1e-14, kAbsolute = 1e-14;
constexpr int kSamples = 200000;

double relative_error(double got, long double exact) {
  return static_cast<double>(std::fabs((static_cast<long double>(got) - exact) / exact));
}

TEST(ExactExp, IsWithinItsStatedError) {
  std::mt19937_64 dice(1);
  std::uniform_real_distribution<double> wide(-708, 709), narrow(-1, 1);
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    for (const double x : {wide(dice), narrow(dice), narrow(dice) * 1e-9})
      worst = std::max(worst, relative_error(exact_exp(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, kRelative);
}

TEST(ExactExp, HasItsLimits) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(exact_exp(0), 1.0);
  EXPECT_EQ(exact_exp(-745.1), 0.0);
  EXPECT_EQ(exact_exp(-kInfinity), 0.0);
  EXPECT_EQ(exact_exp(709.1), kInfinity);
  EXPECT_EQ(exact_exp(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exact_exp(std::nan(""))));
  for (double x = -745; x < -708; x += 0.01)  // results below the normal numbers: within two of their steps
    EXPECT_NEAR(exact_exp(x), std::exp(x), 2 * std::numeric_limits<double>::denorm_min() + kRelative * std::exp(x))
        << x;
}

TEST(ExactLog, IsWithinItsStatedError) {
  std::mt19937_64 dice(2);
  std::uniform_real_distribution<double> exponent(-1074, 1023.9), narrow(0.5, 2);
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    for (const double x : {std::exp2(exponent(dice)), narrow(dice), 1 + (narrow(dice) - 1) * 1e-8})
      if (x != 1) worst = std::max(worst, relative_error(exact_log(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, kRelative);
  EXPECT_EQ(exact_log(1), 0.0);
}

TEST(ExactLog1m, IsWithinItsStatedError) {
  std::mt19937_64 dice(3);
  std::uniform_real_distribution<double> exponent(-40, 0), flat(1e-12, 1);
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    for (const double u : {std::exp2(exponent(dice)), flat(dice)})
      if (u < 1) worst = std::max(worst, relative_error(exact_log1m(u), std::log1p(-static_cast<long double>(u))));
  }
  EXPECT_LT(worst, kRelative);
  EXPECT_NEAR(exact_log1m(1), -745, 1);
}

TEST(ExactLog1p, IsWithinItsStatedError) {
  std::mt19937_64 dice(5);
  std::uniform_real_distribution<double> exponent(-60, 100), flat(0, 1);
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    for (const double x : {std::exp2(exponent(dice)), flat(dice)})
      worst = std::max(worst, relative_error(exact_log1p(x), std::log1p(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, kRelative);
  EXPECT_EQ(exact_log1p(0), 0.0);
}

TEST(ExactSincos, IsWithinItsStatedError) {
  std::mt19937_64 dice(4);
  for (const double range : {1.0, 100.0, 1e5, 1e6, 2e7, 1073741823.0}) {
    std::uniform_real_distribution<double> angles(-range, range);
    double worst = 0;
    for (int i = 0; i < kSamples / 4; ++i) {
      const double angle = i % 2 == 0 ? angles(dice) : static_cast<double>(static_cast<float>(angles(dice)));
      double sine, cosine;
      exact_sincos(angle, sine, cosine);
      worst = std::max(worst, static_cast<double>(std::fabs(sine - std::sin(static_cast<long double>(angle)))));
      worst = std::max(worst, static_cast<double>(std::fabs(cosine - std::cos(static_cast<long double>(angle)))));
    }
    EXPECT_LT(worst, kAbsolute) << "angles up to " << range;
  }
}

TEST(ExactSincos, IsExactAtZero) {
  double sine, cosine;
  exact_sincos(0, sine, cosine);
  EXPECT_EQ(sine, 0.0);
  EXPECT_EQ(cosine, 1.0);
}

}  // namespace
}  // namespace steadfast
