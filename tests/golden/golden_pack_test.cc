// The decoder of MLX's affine mode against words that mlx packed and values that it gave, for every bits and group; and
// the byte examples of model-spec 3.2.
#include <gtest/gtest.h>

#include <cmath>

#include "formats/safetensors.h"
#include "quant/affine.h"
#include "support/checkpoint.h"
#include "support/safetensors_builder.h"

namespace steadfast::test {
namespace {

float rounded(DType dtype, float value) {
  return dtype == DType::kF16 ? f16_to_f32(f32_to_f16(value)) : bf16_to_f32(f32_to_bf16(value));
}

class GoldenPack : public testing::TestWithParam<std::tuple<const char*, int, int>> {};

// mlx rounds the product to the scales' type, then the sum; expand_row does one fused multiply-add in float32.
TEST_P(GoldenPack, GivesTheValuesOfMlx) {
  const auto& [type, bits, group] = GetParam();
  const auto source = SafetensorsFile::open(golden_folder("mlx") / ("pack_" + std::string(type) + ".safetensors"));
  ASSERT_TRUE(source.is_ok()) << source.message();
  const std::string module = "b" + std::to_string(bits) + ".g" + std::to_string(group);
  const auto reader = read_mlx_affine(**source, module, bits, group);
  ASSERT_TRUE(reader.is_ok()) << reader.message();
  ASSERT_EQ((*reader)->out(), 4);
  ASSERT_EQ((*reader)->in(), 256);
  const TensorView* stored = (*source)->find(module + ".values");
  const auto values =
      StoredTensor{stored->dtype, stored->shape, Bytes(stored->data.begin(), stored->data.end())}.floats();
  ASSERT_EQ((*reader)->scale_dtype(), stored->dtype);
  const double unit = stored->dtype == DType::kF16 ? 0x1p-11 : 0x1p-8,
               tiny = stored->dtype == DType::kF16 ? 0x1p-24 : 0;
  std::vector<float> row(256), scales(8), biases(8);
  std::vector<std::uint8_t> codes(256);
  int in_two_steps = 0;
  for (int r = 0; r < 4; ++r) {
    expand_row(**reader, r, row.data());
    (*reader)->read(r, codes.data(), scales.data(), biases.data());
    for (std::size_t i = 0; i < 256; ++i) {
      const float value = values[static_cast<std::size_t>(r) * 256 + i];
      const std::size_t g = i / static_cast<std::size_t>(group);
      const float product = scales[g] * static_cast<float>(codes[i]),
                  two_steps = rounded(stored->dtype, rounded(stored->dtype, product) + biases[g]);
      in_two_steps += two_steps == value;
      ASSERT_EQ(row[i], std::fma(static_cast<float>(codes[i]), scales[g], biases[g]));
      ASSERT_NEAR(
          row[i], value,
          unit * std::fabs(static_cast<double>(product)) + unit * std::fabs(static_cast<double>(value)) + 2 * tiny)
          << r << " " << i << ": " << rounded(stored->dtype, row[i]);
    }
  }
  EXPECT_EQ(in_two_steps, 4 * 256);
}

INSTANTIATE_TEST_SUITE_P(Mlx, GoldenPack,
                         testing::Combine(testing::Values("bf16", "f16"), testing::Values(2, 3, 4, 5, 6, 8),
                                          testing::Values(32, 64, 128)),
                         [](const auto& one) {
                           return std::get<0>(one.param) + std::string("_") + std::to_string(std::get<1>(one.param)) +
                                  "_bits_groups_of_" + std::to_string(std::get<2>(one.param));
                         });

struct Example {
  int bits;
  std::vector<unsigned> bytes;  // of the first values
  std::vector<int> values;
};

TEST(MlxPacking, ReadsTheExamplesOfTheSpecification) {
  std::vector<int> three, six;
  for (int i = 0; i < 32; ++i) three.push_back((5 * i + 3) % 8);
  for (int i = 0; i < 16; ++i) six.push_back((7 * i + 1) % 64);
  const Example examples[] = {
      {2, {0xe4, 0xe4, 0xe4, 0xe4}, {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}},
      {3, {0x88, 0xc6, 0xfa}, {0, 1, 2, 3, 4, 5, 6, 7}},
      {4, {0x10, 0x32, 0x54, 0x76}, {0, 1, 2, 3, 4, 5, 6, 7}},
      {5, {0x41, 0x10, 0x04, 0x3f, 0xa8}, {1, 2, 4, 8, 16, 31, 0, 21}},
      {6, {0x81, 0x00, 0xfe}, {1, 2, 32, 63}},
      {8, {0x01, 0x02, 0x03, 0xff}, {1, 2, 3, 255}},
  };
  const auto of_words = [](const std::vector<std::uint32_t>& words) {
    std::vector<unsigned> bytes;
    for (const std::uint32_t word : words)
      for (int shift = 0; shift < 32; shift += 8) bytes.push_back(word >> shift & 255u);
    return bytes;
  };
  std::vector<Example> all(std::begin(examples), std::end(examples));
  all.push_back({3, of_words({0x43c67543, 0x7543c675, 0xc67543c6}), three});
  all.push_back({6, of_words({0x1d58f201, 0x7039cab9, 0xaa371538}), six});
  for (const Example& example : all) {
    Bytes row;
    for (const unsigned byte : example.bytes) row.push_back(static_cast<std::byte>(byte));
    row.resize(static_cast<std::size_t>(4 * example.bits));  // 32 values, the rest 0
    const Bytes file = SafetensorsBuilder()
                           .add_tensor("m.weight", DType::kU32, {1, example.bits}, row)
                           .add_tensor("m.scales", DType::kBF16, {1, 1}, std::vector<float>{-0.5f})
                           .add_tensor("m.biases", DType::kBF16, {1, 1}, std::vector<float>{1.0f})
                           .build();
    const auto source = SafetensorsFile::from_bytes(file, "example");
    ASSERT_TRUE(source.is_ok()) << source.message();
    const auto reader = read_mlx_affine(**source, "m", example.bits, 32);
    ASSERT_TRUE(reader.is_ok()) << reader.message();
    std::vector<std::uint8_t> codes(32);
    float scale = 0, bias = 0;
    (*reader)->read(0, codes.data(), &scale, &bias);
    for (std::size_t i = 0; i < example.values.size(); ++i)
      EXPECT_EQ(codes[i], example.values[i]) << example.bits << " bits, value " << i;
    EXPECT_EQ(scale, -0.5f);
    EXPECT_EQ(bias, 1.0f);
  }
}

}  // namespace
}  // namespace steadfast::test
