// The linear kernels give the same bits on every instruction set, beside any other rows and over any cut of the tiles.
#include <gtest/gtest.h>

#include "kernel_cases.h"

namespace steadfast::test {
namespace {

using cpu::Kernels;

constexpr int kOut = 37, kRows = 9;  // three tiles, the last of five features
constexpr int kTiles = 3;

std::vector<float> blank(int rows, int out) {
  return std::vector<float>(static_cast<std::size_t>(rows) * static_cast<std::size_t>(out + kSlack), kUntouched);
}

std::vector<float> product(const Kernels& kernels, const cpu::AffineWeight& weight, const InputRows& x, Mode mode,
                           Extent extent) {
  auto y = blank(kRows, weight.out);
  if (extent.last_row == 0) extent.last_row = kRows;
  if (extent.last_tile == 0) extent.last_tile = (weight.out + cpu::kLanes - 1) / cpu::kLanes;
  multiply(kernels, weight, x, mode, extent, y);
  return y;
}

void expect_slack_untouched(const std::vector<float>& y, int rows, int out) {
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < kSlack; ++i)
      ASSERT_EQ(y[static_cast<std::size_t>(row * (out + kSlack) + out + i)], kUntouched) << "behind row " << row;
}

TEST(Linear, HasTheSameBitsOnEveryInstructionSet) {
  Dice dice(1);
  for (const AffineCase& c : affine_cases()) {
    SCOPED_TRACE(c.name());
    const int in = c.group * 2 + (c.group == 32 ? 32 : 0);
    const MemoryAffine reader(dice, kOut, in, c.bits, c.group, c.scale_dtype, c.symmetric);
    const auto weight = pack(reader);
    const auto x = normal_floats(dice, static_cast<std::size_t>(kRows * in));
    const auto bias = normal_floats(dice, kOut), add = normal_floats(dice, blank(kRows, kOut).size());
    const Extent plain, epilogue{.bias = bias.data(), .add = add.data()};
    for (const Mode mode : kModes) {
      for (const Extent& extent : {plain, epilogue}) {
        const Kernels& scalar = *machine_kernels().front();
        const auto expected =
            product(scalar, packed(*weight).affine(), {scalar, x, kRows, in, c.group, mode}, mode, extent);
        expect_slack_untouched(expected, kRows, kOut);
        for (const Kernels* kernels : machine_kernels()) {
          const auto got =
              product(*kernels, packed(*weight).affine(), {*kernels, x, kRows, in, c.group, mode}, mode, extent);
          ASSERT_TRUE(same_bits(got, expected)) << kernels->name << ", mode " << static_cast<int>(mode);
        }
      }
    }
  }
}

// Rows [0, count) in one call, against each row in a call of its own.
TEST(Linear, RowsTogetherEqualEachRowAlone) {
  Dice dice(2);
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    const MemoryAffine reader(dice, kOut, 128, bits, 64, DType::kF16, bits % 2 == 0);
    const auto weight = pack(reader);
    const auto x = normal_floats(dice, static_cast<std::size_t>(kRows * 128));
    for (const Kernels* kernels : machine_kernels()) {
      for (const Mode mode : kModes) {
        const InputRows rows(*kernels, x, kRows, 128, 64, mode);
        auto alone = blank(kRows, kOut);
        for (int row = 0; row < kRows; ++row)
          multiply(*kernels, packed(*weight).affine(), rows, mode, {row, row + 1, 0, kTiles}, alone);
        for (int count = 1; count <= kRows; ++count) {
          auto together = blank(kRows, kOut);
          multiply(*kernels, packed(*weight).affine(), rows, mode, {0, count, 0, kTiles}, together);
          const auto end = static_cast<std::ptrdiff_t>(count) * (kOut + kSlack);
          ASSERT_TRUE(same_bits({together.begin(), together.begin() + end}, {alone.begin(), alone.begin() + end}))
              << kernels->name << ", " << bits << " bits, mode " << static_cast<int>(mode) << ", " << count << " rows";
          for (auto value = together.begin() + end; value != together.end(); ++value) ASSERT_EQ(*value, kUntouched);
        }
      }
    }
  }
}

TEST(Linear, AnyCutOfTheTilesGivesTheSame) {
  Dice dice(3);
  constexpr int kWide = 16 * 7 + 3;  // eight tiles
  const MemoryAffine reader(dice, kWide, 64, 4, 32, DType::kBF16, false);
  const auto weight = pack(reader);
  const auto x = normal_floats(dice, static_cast<std::size_t>(kRows * 64));
  for (const Kernels* kernels : machine_kernels()) {
    for (const Mode mode : kModes) {
      const InputRows rows(*kernels, x, kRows, 64, 32, mode);
      const auto whole = product(*kernels, packed(*weight).affine(), rows, mode, {});
      for (const int cut : {1, 2, 3, 5, 7}) {
        auto parts = blank(kRows, kWide);
        for (const auto& [first, last] : {std::pair(0, cut), std::pair(cut, 8)})
          for (const auto& [row, end] : {std::pair(0, 2), std::pair(2, kRows)})
            multiply(*kernels, packed(*weight).affine(), rows, mode, {row, end, first, last}, parts);
        ASSERT_TRUE(same_bits(parts, whole)) << kernels->name << ", cut at " << cut;
      }
    }
  }
}

TEST(Linear, EpilogueAddsTheBiasAndThenTheResidual) {
  Dice dice(4);
  const MemoryAffine reader(dice, kOut, 64, 4, 32, DType::kF16, false);
  const auto weight = pack(reader);
  const auto x = normal_floats(dice, static_cast<std::size_t>(kRows * 64));
  const auto bias = normal_floats(dice, kOut), add = normal_floats(dice, blank(kRows, kOut).size());
  for (const Kernels* kernels : machine_kernels()) {
    for (const Mode mode : kModes) {
      const InputRows rows(*kernels, x, kRows, 64, 32, mode);
      const auto plain = product(*kernels, packed(*weight).affine(), rows, mode, {});
      const auto both =
          product(*kernels, packed(*weight).affine(), rows, mode, {.bias = bias.data(), .add = add.data()});
      auto in_place = add;  // the residual is y itself, as the model calls it
      multiply(*kernels, packed(*weight).affine(), rows, mode, {0, kRows, 0, kTiles, bias.data(), in_place.data()},
               in_place);
      for (std::size_t row = 0; row < kRows; ++row) {
        for (std::size_t feature = 0; feature < kOut; ++feature) {
          const std::size_t at = row * (kOut + kSlack) + feature;
          ASSERT_EQ(both[at], (plain[at] + bias[feature]) + add[at]);
          ASSERT_EQ(in_place[at], both[at]);
        }
      }
    }
  }
}

// Unquantised weights of any width.
TEST(LinearDense, HasTheSameBitsOnEveryInstructionSetAndForEachRowAlone) {
  Dice dice(5);
  for (const auto type : {cpu::ScaleType::kF32, cpu::ScaleType::kF16, cpu::ScaleType::kBF16}) {
    for (const int in : {1, 5, 33, 64}) {
      std::vector<float> wide = normal_floats(dice, static_cast<std::size_t>(kTiles * in * cpu::kLanes), 0.05f);
      std::vector<std::uint16_t> narrow;
      for (const float w : wide) narrow.push_back(type == cpu::ScaleType::kF16 ? f32_to_f16(w) : f32_to_bf16(w));
      const void* values = type == cpu::ScaleType::kF32 ? static_cast<const void*>(wide.data()) : narrow.data();
      const cpu::DenseWeight weight{kOut, in, type, values};
      const auto x = normal_floats(dice, static_cast<std::size_t>(kRows * in));
      for (const bool round : {false, true}) {
        auto expected = blank(kRows, kOut);
        const auto call = [&](const Kernels& kernels, std::vector<float>& y, int first_row, int last_row) {
          kernels.linear_dense(weight, x.data(), round, {y.data(), kOut + kSlack, nullptr, nullptr}, 0, kTiles,
                               first_row, last_row);
        };
        for (int row = 0; row < kRows; ++row) call(*machine_kernels().front(), expected, row, row + 1);
        expect_slack_untouched(expected, kRows, kOut);
        for (const Kernels* kernels : machine_kernels()) {
          auto y = blank(kRows, kOut);
          call(*kernels, y, 0, kRows);
          ASSERT_TRUE(same_bits(y, expected)) << kernels->name << ", in " << in;
        }
        for (int row = 0; row < kRows; ++row) {
          for (int feature = 0; feature < kOut; ++feature) {
            double exact = 0, size = 0;
            for (int k = 0; k < in; ++k) {
              const auto at = static_cast<std::size_t>((feature / 16 * in + k) * 16 + feature % 16);
              float w = wide[at];
              if (type == cpu::ScaleType::kF16) w = f16_to_f32(narrow[at]);
              if (type == cpu::ScaleType::kBF16 || round) w = bf16_to_f32(f32_to_bf16(w));
              const double term =
                  static_cast<double>(w) * static_cast<double>(x[static_cast<std::size_t>(row * in + k)]);
              exact += term;
              size += std::abs(term);
            }
            ASSERT_NEAR(expected[static_cast<std::size_t>(row * (kOut + kSlack) + feature)], exact, gamma_n(in) * size);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace steadfast::test
