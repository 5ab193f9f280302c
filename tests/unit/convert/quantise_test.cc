// The quantiser against MLX's own results and against the rule in double; packing against the spec's examples.
#include "convert/quantise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "models.h"

namespace steadfast {
namespace {

std::vector<std::byte> bytes_of(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * info(dtype).block_bytes);
  put_floats(dtype, values.data(), values.size(), bytes.data());
  return bytes;
}

void expect_bytes(const TensorView* expected, const std::vector<std::byte>& bytes, const std::string& what) {
  ASSERT_NE(expected, nullptr) << what;
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), expected->data.begin(), expected->data.end())) << what;
}

TEST(Quantise, EqualsMlxForEveryBitsAndGroup) {
  for (const auto& [file, dtype] :
       {std::pair{"mlx/pack_bf16.safetensors", DType::kBF16}, {"mlx/pack_f16.safetensors", DType::kF16}}) {
    const auto goldens = SafetensorsFile::open(test::golden(file));
    ASSERT_TRUE(goldens.is_ok()) << goldens.message();
    const TensorView* w = (*goldens)->find("w");
    ASSERT_NE(w, nullptr);
    ASSERT_EQ(w->dtype, dtype);
    const auto values = test::floats_of(*w);
    const int width = static_cast<int>(w->shape[1]);
    for (const int bits : {2, 3, 4, 5, 6, 8}) {
      for (const int group : {32, 64, 128}) {
        std::vector<std::byte> words(values.size() * static_cast<std::size_t>(bits) / 8);
        std::vector<float> scales(values.size() / static_cast<std::size_t>(group)), biases(scales.size());
        std::vector<std::uint8_t> codes(static_cast<std::size_t>(width));
        for (int row = 0; row < w->shape[0]; ++row) {
          quantise_row(values.data() + row * width, width, bits, group, codes.data(),
                       scales.data() + row * width / group, biases.data() + row * width / group);
          pack_codes(codes.data(), width, bits, words.data() + row * width * bits / 8);
        }
        const std::string name = fmt::format("b{}.g{}.", bits, group);
        expect_bytes((*goldens)->find(name + "weight"), words, file + (" " + name) + "weight");
        expect_bytes((*goldens)->find(name + "scales"), bytes_of(dtype, scales), file + (" " + name) + "scales");
        expect_bytes((*goldens)->find(name + "biases"), bytes_of(dtype, biases), file + (" " + name) + "biases");
      }
    }
  }
}

// The rule in double, each result rounded to float32 once: the same as float32 arithmetic for +, - and /.
struct Reference {
  float scale, bias;
  std::vector<int> codes;
};
Reference reference(const std::vector<float>& w, int bits) {
  const double levels = std::pow(2.0, bits) - 1;
  double low = w[0], high = w[0];
  for (const double value : w) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const auto rounded = [](double value) { return static_cast<double>(static_cast<float>(value)); };
  double scale = std::max(rounded(rounded(high - low) / levels), static_cast<double>(1e-7f));
  const double edge = std::fabs(low) > std::fabs(high) ? low : high;
  if (edge == high && std::fabs(low) <= std::fabs(high)) scale = -scale;
  const double steps = std::rint(rounded(edge / scale));
  double bias = 0;
  if (steps != 0) {
    scale = rounded(edge / steps);
    bias = edge;
  }
  Reference result{static_cast<float>(scale), static_cast<float>(bias), {}};
  for (const double value : w)
    result.codes.push_back(
        static_cast<int>(std::clamp(std::rint(rounded(rounded(value - bias) / scale)), 0.0, levels)));
  return result;
}

TEST(Quantise, FollowsTheRuleInDouble) {
  std::mt19937 dice(5);
  std::normal_distribution<float> normal(0.01f, 0.3f);
  for (int round = 0; round < 600; ++round) {
    const int bits = std::vector{2, 3, 4, 5, 6, 8}[static_cast<std::size_t>(round % 6)];
    std::vector<float> w(64);
    for (float& value : w) value = bf16_to_f32(f32_to_bf16(normal(dice) * std::ldexp(1.0f, round % 40 - 30)));
    std::vector<std::uint8_t> codes(64);
    float scale = 0, bias = 0;
    quantise_row(w.data(), 64, bits, 64, codes.data(), &scale, &bias);
    const Reference expected = reference(w, bits);
    ASSERT_EQ(scale, expected.scale);
    ASSERT_EQ(bias, expected.bias);
    ASSERT_EQ(std::vector<int>(codes.begin(), codes.end()), expected.codes);
  }
}

TEST(Quantise, RoundsHalfToEven) {  // model-spec 3.3: 1, .5, -.25, -.5 at two bits
  std::vector<float> w(32, 0.5f);
  w[0] = 1;
  w[2] = -0.25f;
  w[3] = -0.5f;
  std::vector<std::uint8_t> codes(32);
  float scale = 0, bias = 0;
  quantise_row(w.data(), 32, 2, 32, codes.data(), &scale, &bias);
  EXPECT_EQ(scale, -0.5f);
  EXPECT_EQ(bias, 1.0f);
  EXPECT_EQ((std::vector<int>{codes[0], codes[1], codes[2], codes[3]}), (std::vector<int>{0, 1, 2, 3}));
}

std::vector<int> packed(const std::vector<std::uint8_t>& codes, int bits) {
  std::vector<std::byte> bytes(codes.size() * static_cast<std::size_t>(bits) / 8);
  pack_codes(codes.data(), static_cast<int>(codes.size()), bits, bytes.data());
  std::vector<int> numbers;
  for (const std::byte byte : bytes) numbers.push_back(static_cast<int>(byte));
  return numbers;
}

TEST(Quantise, PacksAsTheSpecSays) {  // model-spec 3.2
  EXPECT_EQ(packed({0, 1, 2, 3, 0, 1, 2, 3}, 2), (std::vector<int>{0xe4, 0xe4}));
  EXPECT_EQ(packed({0, 1, 2, 3, 4, 5, 6, 7}, 3), (std::vector<int>{0x88, 0xc6, 0xfa}));
  EXPECT_EQ(packed({0, 1, 2, 3, 4, 5, 6, 7}, 4), (std::vector<int>{0x10, 0x32, 0x54, 0x76}));
  EXPECT_EQ(packed({1, 2, 4, 8, 16, 31, 0, 21}, 5), (std::vector<int>{0x41, 0x10, 0x04, 0x3f, 0xa8}));
  EXPECT_EQ(packed({1, 2, 32, 63, 0, 0, 0, 0}, 6), (std::vector<int>{0x81, 0x00, 0xfe, 0, 0, 0}));
  EXPECT_EQ(packed({1, 2, 3, 255, 4, 5, 6, 7}, 8), (std::vector<int>{1, 2, 3, 255, 4, 5, 6, 7}));
}

}  // namespace
}  // namespace steadfast
