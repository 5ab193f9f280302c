// Packing moves codes, scales and biases and changes none: expand() gives back the reader's values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernel_cases.h"

namespace steadfast::test {
namespace {

constexpr int kOut = 37;

void expect_expands_to(const Weight& weight, const MemoryAffine& reader, std::span<const int> row_map) {
  std::vector<float> got(static_cast<std::size_t>(reader.in())), expected(got.size());
  for (int feature = 0; feature < reader.out(); ++feature) {
    const int row = row_map.empty() ? feature : row_map[static_cast<std::size_t>(feature)];
    packed(weight).expand(feature, got.data());
    for (int k = 0; k < reader.in(); ++k) {
      const int g = k / reader.group();
      expected[static_cast<std::size_t>(k)] =
          std::fma(static_cast<float>(reader.code(row, k)), reader.scale(row, g), reader.bias(row, g));
    }
    ASSERT_TRUE(same_bits(got, expected)) << "feature " << feature;
  }
}

TEST(Packed, ExpandsToEveryValueOfTheFile) {
  Dice dice(1);
  for (const AffineCase& c : affine_cases()) {
    SCOPED_TRACE(c.name());
    const MemoryAffine reader(dice, kOut, 3 * c.group, c.bits, c.group, c.scale_dtype, c.symmetric);
    const auto weight = pack(reader);
    EXPECT_EQ(weight->out(), kOut);
    EXPECT_EQ(weight->in(), 3 * c.group);
    EXPECT_EQ(packed(*weight).affine().symmetric, c.symmetric);
    EXPECT_EQ(packed(*weight).affine().biases == nullptr, c.symmetric);
    expect_expands_to(*weight, reader, {});
  }
}

TEST(Packed, FollowsTheRowMap) {
  Dice dice(2);
  std::vector<int> map(kOut);
  std::iota(map.begin(), map.end(), 0);
  std::shuffle(map.begin(), map.end(), dice);
  for (const bool symmetric : {false, true}) {
    const MemoryAffine reader(dice, kOut, 96, 5, 32, DType::kF32, symmetric);
    expect_expands_to(*pack(reader, map), reader, map);
  }
}

TEST(Packed, OneOtherBiasMakesAWeightAsymmetric) {
  Dice dice(3);
  MemoryAffine reader(dice, kOut, 64, 4, 32, DType::kF16, true);
  reader.bias(kOut - 1, 1) = 0.5f;
  const auto weight = pack(reader);
  EXPECT_FALSE(packed(*weight).affine().symmetric);
  expect_expands_to(*weight, reader, {});
}

}  // namespace
}  // namespace steadfast::test
